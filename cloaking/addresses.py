"""Remove secrets from addresses of tables, folders and databases, and detect addresses that contain a known secret.

Only parts that are known to be a place are shown; an ambiguous address is cut, never guessed.
"""

import re

CUT = "..."  # replaces what is not published; ASCII, since the name of a report becomes the name of a folder

_HOST = r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?"
_HOSTS = rf"{_HOST}(?:,{_HOST})*"
_BLOCK = re.compile(r"jdbc:[\w-]+")
_DATABASE = re.compile(r"(jdbc:\w+(?::[a-z]\w*)?://)(.*)", re.DOTALL)
_DATABASE_PLACE = re.compile(rf"({_HOSTS}(?:\\\\[\w$-]+)?(?:/[\w$.-]*)*)(?:([?;#:,&])(.*))?", re.DOTALL)
_NAMED = re.compile(r"(database(?:name)?=[\w$-]+)(;.*)?", re.IGNORECASE | re.DOTALL)  # first among the parameters
_ORACLE = re.compile(rf"(jdbc:oracle:(?:thin|oci8?):)[^@]*@((?://)?{_HOST}(?:[/:][\w$.-]+)?)")
_STORE = re.compile(r"((?:[a-z]\w*:|[\w.]+\.`)?([a-z][a-z0-9+.-]*)://)(.*)", re.IGNORECASE | re.DOTALL)
_STORE_PLACE = re.compile(rf"((?:{_HOSTS})?(?:/[^?;#@]*|`)?)(?:([?;#])(.*))?", re.DOTALL)
_CONTAINER = re.compile(r"\$?[a-z0-9-]+")  # Azure's addresses have a container in the place of the user
_AZURE = ("abfs", "abfss", "wasb", "wasbs")
_USERS_SIGNS = re.compile(r"[/?;#,()\[\]{}]")  # not allowed in a user part: the @ after them may not end one
_PATH = re.compile(
    r"((?:(?:parquet|orc|csv|json|text|xml|avro|delta|iceberg|hudi):)?(?:(?:file|dbfs|hdfs):(?=/))?)(.*)", re.DOTALL
)
_PATH_PARAMETERS = re.compile(r"[?;#](?=.*=)", re.DOTALL)  # a path may contain these characters, but no parameters
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
_WORD = re.compile(r"(?:[A-Za-z]\w*:)?(?:jdbc:|[A-Za-z][\w+.-]*://)\S*")
_BEHIND = "'\"`)]}>:,."  # may follow an address in a sentence, and is no part of it

_PRIVATE = (
    r"(?:passw(?:or)?d?|passphrase|pwd|secret|token|credentials?|signature"
    r"|(?:private|pvt|secret|access|account|api|client|shared)[\w.-]{0,7}key(?:[_.-]?base64)?)"
)
# user:password@ before a host, unless a port follows the colon
_USER = r"//(?!\[)[^/@\s?;#]*:(?!\d+[/?;,])[^@\s]*@"
_REFUSED = re.compile(rf"{_USER}|[?&;](?:[^=&;]*{_PRIVATE}[^=&;]*|sig)=", re.IGNORECASE)
# Oracle has user/password@host; drivers separate parameters by various characters
_DATABASE_REFUSED = re.compile(
    rf"{_USER}|^jdbc:oracle:\w+:[^@]*/[^@]+@|[?&;:,(/]\s*[\w.-]*{_PRIVATE}\s*=", re.IGNORECASE
)


def published(address: str) -> str:
    """Return the parts of an address that may be shown: scheme, host and database, or bucket and path.

    The user part and the parameters become `...`, whatever their names: no list of secret names would be complete. If
    an address is ambiguous or of an unknown form, more is left out. Catalog names and paths have no such parts and stay
    unchanged. The function is deterministic, and idempotent: a published address stays unchanged.
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
    """Return a text in which `published` is applied to every address."""

    def shown(word: re.Match[str]) -> str:
        address = word[0].rstrip(_BEHIND)
        return published(address) + word[0][len(address) :]

    return _WORD.sub(shown, text)


def is_refused(address: str) -> bool:
    """Return whether an address contains a known kind of secret; `published` also cuts those that only might."""
    return (_DATABASE_REFUSED if address.startswith("jdbc:") else _REFUSED).search(address) is not None


def _shown(rest: str, place: re.Pattern[str], container: bool = False) -> str:
    """Return the part after scheme:// without user and parameters, or only `...` if it is not certainly a place."""
    user, at, where = rest.rpartition("@")
    found = place.fullmatch(where)
    if found is None or "@" in user or _USERS_SIGNS.search(user):
        return CUT
    kept = user if container and _CONTAINER.fullmatch(user) else CUT
    named = _NAMED.fullmatch(found[3]) if place is _DATABASE_PLACE and found[2] == ";" else None
    tail = f"{named[1]};{CUT}" if named and named[2] else named[1] if named else CUT
    return (f"{kept}@" if at else "") + found[1] + (found[2] + tail if found[2] else "")


def _database(url: str) -> str:
    """Return the parts of a JDBC url that may be shown."""
    oracle = _ORACLE.fullmatch(url)
    if oracle is not None:
        return f"{oracle[1]}{CUT}@{oracle[2]}"
    known = _DATABASE.fullmatch(url)
    return f"jdbc:{CUT}" if known is None else known[1] + _shown(known[2], _DATABASE_PLACE)


def _path(address: str) -> str:
    """Return a path or a catalog's name without anything that looks like a user part or parameters."""
    known = _PATH.fullmatch(address)
    assert known is not None  # it matches any text
    first = known[2].partition("/")[0]  # may be the user part of an address that lacks its slashes
    if "@" in known[2] and (_SCHEME.match(known[2]) or ":" in first):
        return known[1] + CUT
    parameters = _PATH_PARAMETERS.search(known[2])
    shown = known[2] if parameters is None else f"{known[2][: parameters.start()]}{parameters[0]}{CUT}"
    return known[1] + shown
