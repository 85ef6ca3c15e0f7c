"""Groups of arrays as kernels have them: a place in memory, of which each reads what it needs.

numba takes a named tuple apart into the members of its arrays wherever it is passed on, hundreds of
them for the groups of `layout`: that was most of what there was to compile. Here a group is an
address of words of 64 bits: the value of a scalar, where an array begins and its shape, the words
of a group in it.

References are not counted, as who calls a kernel holds its arrays: an array that a kernel makes
must not be in a group of a class that Python passes to any kernel. Nor may a group that is made in
a loop be used in the next turn, which writes the words anew.
"""

# mypy: allow-untyped-calls
from hashlib import sha1
from inspect import signature
from itertools import accumulate
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel.models import DataModel
from numba.core.datamodel.registry import register_default
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr, make_callable_template
from numba.extending import NativeValue, lower_builtin, typeof_impl, unbox

from .lowering import DATA, WORD, array_value

_WORDS = WORD.as_pointer()
_BYTES = 8
# Of the words of numpy's arrays, the address of the data, and that of the shape.
_DATA_AT = object.__basicsize__ // _BYTES
_SHAPE_AT = _DATA_AT + 2


class Group(types.NamedTuple):
    """The type of a named tuple of scalars, contiguous arrays and such tuples.

    places: of each member among the words, and their number.
    """

    def __init__(self, members: tuple[Any, ...], cls: type) -> None:
        super().__init__(members, cls)
        # Short: the names of functions have those of the types of all arguments.
        self.name = f"{cls.__name__}.{sha1(repr((cls, members)).encode()).hexdigest()[:8]}"
        self.places = [*accumulate(map(_size, members), initial=0)]


def _size(kind: Any) -> int:
    """The number of words of a member."""
    if isinstance(kind, Group):
        return kind.places[-1]
    return 1 + kind.ndim if isinstance(kind, types.Array) else 1


class _GroupClass(types.NamedTupleClass):
    """The type of a class of named tuples, which is called with their members."""


@infer_getattr
class _Call(AttributeTemplate):
    key = _GroupClass

    def resolve___call__(self, kind: _GroupClass) -> Any:
        cls = kind.instance_class

        def typer(*members: Any) -> Group:
            return Group(tuple(map(types.unliteral, members)), cls)

        typer.pysig = signature(cls)  # type: ignore[attr-defined]
        template: Any = make_callable_template
        return types.Function(template(self.key, typer))


@register_default(Group)
class _Model(DataModel):
    """A group is handed on as an address, and returned as words."""

    def get_value_type(self) -> Any:
        return _WORDS

    def get_return_type(self) -> Any:
        return ir.ArrayType(WORD, self._fe_type.places[-1])

    def as_argument(self, builder: Any, value: Any) -> Any:
        return value

    def from_argument(self, builder: Any, value: Any) -> Any:
        # While a function has a group nobody writes to it: a word has to be read once.
        value.add_attribute("noalias")
        value.attributes.dereferenceable = _BYTES * self._fe_type.places[-1]
        return value

    def as_return(self, builder: Any, value: Any) -> Any:
        return builder.load(builder.bitcast(value, self.get_return_type().as_pointer()))

    def from_return(self, builder: Any, value: Any) -> Any:
        return builder.bitcast(cgutils.alloca_once_value(builder, value), _WORDS)


def _room(builder: Any, group: Group) -> Any:
    """Memory for the words of a group, for the time of the function that makes it."""
    words = cgutils.alloca_once(builder, ir.ArrayType(WORD, group.places[-1]))
    return builder.bitcast(words, _WORDS)


def _at(builder: Any, words: Any, place: int, kind: Any = WORD) -> Any:
    """The address of a word, for a value of an LLVM type."""
    return builder.bitcast(builder.gep(words, [WORD(place)]), kind.as_pointer())


def _load(context: Any, builder: Any, group: Group, words: Any, i: int) -> Any:
    """Read a member."""
    kind, place = group.types[i], group.places[i]
    if isinstance(kind, Group):
        return _at(builder, words, place)
    if isinstance(kind, types.Array):
        pointer = context.get_value_type(kind).elements[DATA]
        data = builder.load(_at(builder, words, place, pointer))
        lengths = range(place + 1, group.places[i + 1])
        shape = [builder.load(_at(builder, words, k)) for k in lengths]
        return array_value(context, builder, kind, data, shape)
    model = context.data_model_manager[kind]
    return model.load_from_data_pointer(builder, _at(builder, words, place, model.get_data_type()))


def _store(context: Any, builder: Any, kind: Any, value: Any, words: Any, place: int) -> None:
    """Write a member."""
    if isinstance(kind, Group):
        size = WORD(_BYTES * kind.places[-1])
        cgutils.raw_memcpy(builder, _at(builder, words, place), value, size, WORD(1))
        return
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        parts = [array.data, *cgutils.unpack_tuple(builder, array.shape, kind.ndim)]
    else:
        parts = [context.data_model_manager[kind].as_data(builder, value)]
    for i, part in enumerate(parts):
        builder.store(part, _at(builder, words, place + i, part.type))


@lower_builtin(_GroupClass, types.VarArg(types.Any))
def _make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    group = sig.return_type
    words = _room(builder, group)
    for i, (kind, value) in enumerate(zip(group.types, args, strict=True)):
        member = context.cast(builder, value, sig.args[i], kind)
        _store(context, builder, kind, member, words, group.places[i])
    return words


@lower_getattr_generic(Group)
def _get(context: Any, builder: Any, group: Group, words: Any, name: str) -> Any:
    return _load(context, builder, group, words, group.fields.index(name))


@lower_builtin("static_getitem", Group, types.IntegerLiteral)
def _get_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _load(context, builder, sig.args[0], *args)


def _fill(group: Group, given: Any, c: Any, words: Any, first: int) -> Any:
    """Write the words of a named tuple of Python from a place on. RETURNS: whether that failed."""
    builder, failed = c.builder, cgutils.false_bit
    for i, kind in enumerate(group.types):
        member, place = c.pyapi.tuple_getitem(given, i), first + group.places[i]
        if isinstance(kind, Group):
            failed = builder.or_(failed, _fill(kind, member, c, words, place))
        elif isinstance(kind, types.Array):
            # numba would make an object that holds the array.
            of_array = builder.bitcast(member, _WORDS)
            shape = builder.load(_at(builder, of_array, _SHAPE_AT, _WORDS))
            lengths = [builder.load(_at(builder, shape, k)) for k in range(kind.ndim)]
            data = builder.load(_at(builder, of_array, _DATA_AT))
            for k, part in enumerate([data, *lengths]):
                builder.store(part, _at(builder, words, place + k))
        else:
            number = c.unbox(kind, member)
            _store(c.context, builder, kind, number.value, words, place)
            failed = builder.or_(failed, number.is_error)
    return failed


@unbox(Group)
def _unbox(group: Group, given: Any, c: Any) -> NativeValue:
    words = _room(c.builder, group)
    return NativeValue(words, is_error=_fill(group, given, c, words, 0))


def _type_of(value: Any, c: Any) -> Group | None:
    """The type of a group; None, which numba refuses, where an array is not contiguous."""
    members = tuple(typeof_impl(member, c) for member in value)
    if any(kind is None or getattr(kind, "layout", "C") != "C" for kind in members):
        return None
    return Group(members, type(value))


_known: set[type] = set()
_type_of_other_class = typeof_impl.dispatch(type)


@typeof_impl.register(type)
def _type_of_class(cls: type, c: Any) -> Any:
    return _GroupClass(cls) if cls in _known else _type_of_other_class(cls, c)


def register(cls: Any) -> None:
    """Let kernels have named tuples of a class, and of those that are in it, as groups."""
    if isinstance(cls, type) and hasattr(cls, "_fields") and cls not in _known:
        _known.add(cls)
        typeof_impl.register(cls, _type_of)
        for member in cls.__annotations__.values():
            register(member)
