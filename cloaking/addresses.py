"""Addresses of tables, folders and databases: what of one may be published, and which hold a known secret.

Only what is known to be a place is shown; an address that can be read in another way is cut, never guessed.
"""

import re

CUT = "..."  # stands for what is not published; ASCII, since the name of a report becomes the name of a folder

_HOST = r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?"
_HOSTS = rf"{_HOST}(?:,{_HOST})*"
_BLOCK = re.compile(r"jdbc:[\w-]+")
_DATABASE = re.compile(r"(jdbc:\w+(?::[a-z]\w*)?://)(.*)", re.DOTALL)
_DATABASE_PLACE = re.compile(rf"({_HOSTS}(?:\\\\[\w$-]+)?(?:/[\w$.-]*)*)(?:([?;#:,&])(.*))?", re.DOTALL)
_NAMED = re.compile(r"(database(?:name)?=[\w$-]+)(;.*)?", re.IGNORECASE | re.DOTALL)  # first among the parameters
_ORACLE = re.compile(rf"(jdbc:oracle:(?:thin|oci8?):)[^@]*@((?://)?{_HOST}(?:[/:][\w$.-]+)?)")
_STORE = re.compile(r"((?:[a-z]\w*:|[\w.]+\.`)?([a-z][a-z0-9+.-]*)://)(.*)", re.IGNORECASE | re.DOTALL)
_STORE_PLACE = re.compile(rf"((?:{_HOSTS})?(?:/[^?;#@]*|`)?)(?:([?;#])(.*))?", re.DOTALL)
_CONTAINER = re.compile(r"\$?[a-z0-9-]+")  # what Azure's addresses have where others have a user
_AZURE = ("abfs", "abfss", "wasb", "wasbs")
_USERS_SIGNS = re.compile(r"[/?;#,()\[\]{}]")  # none may be in a user part: the @ behind may belong to something else
_PATH = re.compile(
    r"((?:(?:parquet|orc|csv|json|text|xml|avro|delta|iceberg|hudi):)?(?:(?:file|dbfs|hdfs):(?=/))?)(.*)", re.DOTALL
)
_PATH_PARAMETERS = re.compile(r"[?;#](?=.*=)", re.DOTALL)  # a path may hold these signs, but no parameters
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
_WORD = re.compile(r"(?:[A-Za-z]\w*:)?(?:jdbc:|[A-Za-z][\w+.-]*://)\S*")
_BEHIND = "'\"`)]}>:,."  # what closes a word of a sentence and is no part of an address

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
    """Return a text in which every word that is an address is replaced by what may be shown of it."""

    def shown(word: re.Match[str]) -> str:
        address = word[0].rstrip(_BEHIND)
        return published(address) + word[0][len(address) :]

    return _WORD.sub(shown, text)


def is_refused(address: str) -> bool:
    """Tell whether an address holds what is known to be secret; to publish others safely is up to `published`."""
    return (_DATABASE_REFUSED if address.startswith("jdbc:") else _REFUSED).search(address) is not None


def _shown(rest: str, place: re.Pattern[str], container: bool = False) -> str:
    """Return what follows scheme://, without user and parameters; nothing of it where it is not surely a place."""
    user, at, where = rest.rpartition("@")
    found = place.fullmatch(where)
    if found is None or "@" in user or _USERS_SIGNS.search(user):
        return CUT
    kept = user if container and _CONTAINER.fullmatch(user) else CUT
    named = _NAMED.fullmatch(found[3]) if place is _DATABASE_PLACE and found[2] == ";" else None
    tail = f"{named[1]};{CUT}" if named and named[2] else named[1] if named else CUT
    return (f"{kept}@" if at else "") + found[1] + (found[2] + tail if found[2] else "")


def _database(url: str) -> str:
    """Return what may be shown of a JDBC url."""
    oracle = _ORACLE.fullmatch(url)
    if oracle is not None:
        return f"{oracle[1]}{CUT}@{oracle[2]}"
    known = _DATABASE.fullmatch(url)
    return f"jdbc:{CUT}" if known is None else known[1] + _shown(known[2], _DATABASE_PLACE)


def _path(address: str) -> str:
    """Return what may be shown of a path or a catalog's name: all but what looks like a user part or parameters."""
    known = _PATH.fullmatch(address)
    assert known is not None  # it matches any text
    first = known[2].partition("/")[0]  # a user part of an address without its two slashes
    if "@" in known[2] and (_SCHEME.match(known[2]) or ":" in first):
        return known[1] + CUT
    parameters = _PATH_PARAMETERS.search(known[2])
    shown = known[2] if parameters is None else f"{known[2][: parameters.start()]}{parameters[0]}{CUT}"
    return known[1] + shown
