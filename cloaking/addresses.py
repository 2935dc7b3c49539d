"""Addresses of tables, folders and databases: what of one may be published, and which hold a known secret."""

import re

CUT = "..."  # stands for what is not published; ASCII, since the name of a report becomes the name of a folder

_HOST = r"(?:[\w.-]+(?:\\[\w$-]+)?|\[[0-9a-f:.]+\])(?::\d+)?"
_HOSTS = rf"(?:{_HOST}(?:,{_HOST})*)?"
_STORE = re.compile(r"((?:[a-z]\w*:|[\w.]+\.`)?([a-z][a-z0-9+.-]*)://)(.*)", re.IGNORECASE | re.DOTALL)
_STORE_PLACE = re.compile(rf"{_HOSTS}(?:[/`].*)?", re.IGNORECASE | re.DOTALL)
_CONTAINER = re.compile(r"\$?[a-z0-9-]+")  # what Azure's addresses have where others have a user
_AZURE = ("abfs", "abfss", "wasb", "wasbs")
_BLOCK = re.compile(r"jdbc:[^:/@;?#=&]+", re.IGNORECASE)
_DATABASE = re.compile(r"(jdbc:\w+(?::[a-z]\w*)?://)(.*)", re.IGNORECASE | re.DOTALL)
_DATABASE_PLACE = re.compile(rf"({_HOSTS}(?:/[\w$.-]+){{0,2}}/?)|({_HOSTS}/[\w$.-]+):.*", re.IGNORECASE | re.DOTALL)
_DATABASE_KEYS = ("database", "databasename", "db")
_ORACLE = re.compile(r"(jdbc:oracle:(?:thin|oci8?):)(.*)", re.IGNORECASE | re.DOTALL)
_ORACLE_PLACE = re.compile(rf"(?:(?:tcps?:)?//)?{_HOST}(?:[/:][\w$.-]+)?", re.IGNORECASE)
_PATH = re.compile(
    r"((?:(?:parquet|orc|csv|json|text|xml|avro|delta|iceberg|hudi):)?(?:(?:file|dbfs|hdfs):(?=/))?)(.*)", re.DOTALL
)
_PARAMETERS = re.compile(r"[?;#]")
_PATH_PARAMETERS = re.compile(r"[?;&#](?=[\w.-]*=)")  # a path may hold these signs, but no parameters
_WORD = re.compile(r"\S*://\S*")

_PRIVATE = (
    r"(?:passw(?:or)?d?|passphrase|pwd|secret|token|credentials?|signature"
    r"|(?:private|pvt|secret|access|account|api|client|shared)[\w.-]{0,7}key(?:[_.-]?base64)?)"
)
# user:password@ before a host, where what follows the colon is no port
_USER = r"//(?!\[)[^/@\s?;#]*:(?!\d+[/?;,])[^@\s]*@"
_REFUSED = re.compile(rf"{_USER}|[?&;](?:[^=&;]*{_PRIVATE}[^=&;]*|sig)=", re.IGNORECASE)
# Oracle has user/password@host; drivers set what follows apart in several ways
_DATABASE_REFUSED = re.compile(
    rf"{_USER}|^jdbc:oracle:\w+:[^@]*/[^@]+@|[?&;:,(/]\s*[\w.-]*{_PRIVATE}\s*=", re.IGNORECASE
)


def published(address: str) -> str:
    """Return what may be shown of an address: scheme, host and database, or bucket and path.

    A user part and parameters become `...`, whatever they are called: no list of names that are secret would ever be
    complete. Where an address can be read in two ways, or in none that is known, more is left out. A name of a catalog
    and a path have neither and stay as they are. The same address always gives the same text, which published again
    stays as it is.
    """
    if address[:5].lower() == "jdbc:":
        return address if _BLOCK.fullmatch(address) else _database(address)
    store = _STORE.fullmatch(address)
    if store is not None and not (store[2].lower() == "file" and store[3].startswith("/")):
        return store[1] + _shown(store[3], _STORE_PLACE, container=store[2].lower() in _AZURE)
    if store is None and "://" in address:
        return CUT
    return _path(address)


def published_words(text: str) -> str:
    """Return a text in which every word that holds an address is replaced by what may be shown of it."""
    return _WORD.sub(lambda word: published(word[0]), text)


def is_refused(address: str) -> bool:
    """Tell whether an address holds what is known to be secret; to publish others safely is up to `published`."""
    return (_DATABASE_REFUSED if address.startswith("jdbc:") else _REFUSED).search(address) is not None


def _split(rest: str, parameters: re.Pattern[str]) -> tuple[str | None, str, str] | None:
    """Return user part, place and parameters; None where an @ may end a user part or belong to a parameter."""
    sign = parameters.search(rest)
    head, tail = (rest[: sign.start()], rest[sign.start() :]) if sign else (rest, "")
    if "@" in tail:
        return None
    user, at, place = head.rpartition("@")
    return user if at else None, place, tail


def _shown(rest: str, allowed: re.Pattern[str], container: bool = False) -> str:
    """Return what follows scheme://, without user and parameters; nothing of it where the place is not `allowed`."""
    found = _split(rest, _PARAMETERS)
    if found is None or not allowed.fullmatch(found[1]):
        return CUT
    user, place, tail = found
    kept = user if not user or (container and _CONTAINER.fullmatch(user)) else CUT
    return ("" if kept is None else f"{kept}@") + place + (f"{tail[0]}{CUT}" if tail else "")


def _database(url: str) -> str:
    """Return what may be shown of a JDBC url."""
    oracle = _ORACLE.fullmatch(url)
    if oracle is not None:
        return oracle[1] + (_shown(oracle[2], _ORACLE_PLACE) if "@" in oracle[2] else CUT)  # user/password alone
    known = _DATABASE.fullmatch(url)
    found = _split(known[2], _PARAMETERS) if known is not None else None
    place = _DATABASE_PLACE.fullmatch(found[1]) if found is not None else None
    if known is None or found is None or place is None:
        return (known[1] if known is not None else "jdbc:") + CUT
    user, _, tail = found
    shown = place[1] if place[2] is None else f"{place[2]}:{CUT}"
    return known[1] + ("" if user is None else f"{CUT}@") + shown + _named_database(tail)


def _named_database(tail: str) -> str:
    """Return the parameters of a database's url with the database alone, where it is one of them."""
    if not tail:
        return ""
    sign = "&" if tail[0] == "?" else tail[0]
    given = [one for one in tail[1:].split(sign) if one]
    quoted = any(mark in tail for mark in "{}'\"")  # a quoted value may hold what looks like another parameter
    for one in given:
        key, _, value = one.partition("=")
        if not quoted and key.lower() in _DATABASE_KEYS and re.fullmatch(r"[\w$-]+", value):
            return f"{tail[0]}{one}" + (f"{sign}{CUT}" if len(given) > 1 else "")
    return f"{tail[0]}{CUT}"


def _path(address: str) -> str:
    """Return what may be shown of a path or a catalog's name: all but what looks like a user part or parameters."""
    known = _PATH.fullmatch(address)
    assert known is not None  # it matches any text
    found = _split(known[2], _PATH_PARAMETERS)
    if found is None:
        return known[1] + CUT
    user, place, tail = found
    shown = "" if user is None else f"{CUT if ':' in user else user}@"
    return known[1] + shown + place + (f"{tail[0]}{CUT}" if tail else "")
