"""Pages of HTML, parsed, and a text that would break one."""

import html.parser

HOSTILE = "<script>x</script>\"'&amp;{{ 7*7 }}"


class Reader(html.parser.HTMLParser):
    """Collects tags, ids, links and texts of a page; elements may lack optional end tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "td", "th", "wbr", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in ("td", "th") or self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, attribute: str) -> list[str | None]:
        return [attrs[attribute] for _, attrs in self.tags if attribute in attrs]
