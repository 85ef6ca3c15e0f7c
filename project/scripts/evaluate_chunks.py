"""Score chunks on CoNLL-2000: precision, recall and F1 of whole chunks, as conlleval counts."""

import spacy
import srsly
import typer
from evaluate_spans import Data, Model, Output, given
from seqeval.metrics import f1_score, precision_score, recall_score


def main(model: Model, data: Data, output: Output) -> None:
    """Predict the chunks of Docs that have their part-of-speech tags, and score them."""
    nlp = spacy.load(model)
    examples = list(given(data)(nlp))
    gold = [[token._.chunk for token in example.reference] for example in examples]
    docs = nlp.pipe(example.predicted for example in examples)
    predicted = [[token._.chunk for token in doc] for doc in docs]
    right = sum(
        a == b for x, y in zip(gold, predicted, strict=True) for a, b in zip(x, y, strict=True)
    )
    scores = {
        "chunk_p": precision_score(gold, predicted),
        "chunk_r": recall_score(gold, predicted),
        "chunk_f": f1_score(gold, predicted),
        "chunk_acc": right / sum(map(len, gold)),
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, {name: float(score) for name, score in scores.items()})
    for name, score in scores.items():
        print(f"{name}  {100 * score:.2f}")


if __name__ == "__main__":
    typer.run(main)
