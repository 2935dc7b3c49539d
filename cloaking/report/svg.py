"""Convert a matplotlib figure to reproducible inline SVG, with the page's colours, text kept as text and unique ids."""

import hashlib
import io
import re
from collections.abc import Mapping
from xml.etree import ElementTree

import matplotlib
from matplotlib.figure import Figure

# Figures are drawn in these colours; in the page each becomes a CSS variable, with the colour as its fallback.
INK, BAR, LOW = "#1b2430", "#2f6fb1", "#c2410c"
_PAINT = {INK: "currentColor", BAR: f"var(--bar, {BAR})", LOW: f"var(--low, {LOW})"}

_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # None omits the entry
_NOT_STYLE = {"backend", "backend_fallback", "interactive", "toolbar", "timezone"}
# The machine's matplotlibrc must not affect a report, so all settings are reset; the font comes with matplotlib.
RC = {
    **{key: value for key, value in matplotlib.rcParamsDefault.items() if key not in _NOT_STYLE},
    "font.family": "DejaVu Sans",
    "svg.fonttype": "none",
    "svg.hashsalt": "cloaking",
}
# Control characters except tab and line feed, marks that turn the writing direction, and halves of UTF-16 pairs.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_REFERENCE = re.compile(r"#([\w.-]+)")


def inline(figure: Figure, name: str, title: str, description: str, texts: Mapping[str, str] | None = None) -> str:
    """Return a figure as an SVG element for an HTML page.

    Args:
        figure: drawn in INK, BAR and LOW, one unit per point.
        name: the prefix of every id, so it must be unique in the page.
        title: the name that a screen reader reads.
        description: what the chart shows, in words.
        texts: replacements for the drawn texts that equal a key. Users' texts are inserted in this way, because
            matplotlib would parse mathematics in them, and its font may lack a character.
    """
    file = io.StringIO()
    with matplotlib.rc_context(RC):
        figure.savefig(file, format="svg", transparent=True, metadata=_METADATA)
    drawn = ElementTree.fromstring(file.getvalue())
    view = drawn.attrib["viewBox"]

    # Two reports in one document (a notebook) must not have an id in common.
    digest = hashlib.sha256(repr((file.getvalue(), title, description, texts)).encode()).hexdigest()[:8]
    prefix = f"{name}-{digest}"
    svg = ElementTree.Element(
        "svg",
        {
            "viewBox": view,
            "role": "img",
            "aria-labelledby": f"{prefix}-title",
            "aria-describedby": f"{prefix}-desc",
            "style": "stroke-linejoin: round; display: block; width: 100%; height: auto",
        },
    )
    ElementTree.SubElement(svg, "title", {"id": f"{prefix}-title"}).text = printable(title)
    ElementTree.SubElement(svg, "desc", {"id": f"{prefix}-desc"}).text = printable(description)
    referenced = {
        match for node in drawn.iter() for value in node.attrib.values() for match in _REFERENCE.findall(value)
    }
    for child in drawn:
        _copy(child, svg, prefix, referenced, texts or {})
    return ElementTree.tostring(svg, encoding="unicode")


def printable(text: str) -> str:
    """Return the text with a replacement character for every control character."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def _copy(
    node: ElementTree.Element,
    parent: ElementTree.Element,
    prefix: str,
    referenced: set[str],
    texts: Mapping[str, str],
) -> None:
    """Append the visible part of a node to the parent: no metadata, style sheet, bare group or unreferenced id."""
    tag = node.tag.rpartition("}")[2]
    if tag in ("metadata", "style"):
        return
    attributes = {}
    for key, value in node.attrib.items():
        key = key.rpartition("}")[2]
        if key == "id":
            if value in referenced:
                attributes["id"] = f"{prefix}-{value}"
        elif key == "style":
            attributes["style"] = _style(value)
        elif key == "href":
            attributes["href"] = f"#{prefix}-{value[1:]}"
        elif key == "d":
            attributes["d"] = " ".join(value.split())
        elif key != "transform" or "rotate(-0" not in value:
            attributes[key] = value.replace("url(#", f"url(#{prefix}-")
    if tag == "g" and not attributes:  # a group that only carried an id
        for child in node:
            _copy(child, parent, prefix, referenced, texts)
        return
    if tag == "path" and attributes.get("style") == "fill: none":  # an invisible background
        return
    copy = ElementTree.Element(tag, attributes)
    text = (node.text or "").strip()
    if text:
        copy.text = printable(texts.get(text, text))
    for child in node:
        _copy(child, copy, prefix, referenced, texts)
    if len(copy) or copy.text or tag not in ("g", "defs"):
        parent.append(copy)


def _style(style: str) -> str:
    """Return a style with the page's colours and without a font, so that the page's font applies."""
    for drawn, painted in _PAINT.items():
        style = style.replace(drawn, painted)
    rules = []
    for rule in style.split("; "):
        key, _, value = rule.partition(": ")
        if key == "font":  # one rule for size, weight and family, before about matplotlib 3.10
            size = re.search(r"[\d.]+px", value)
            rules += [f"font-size: {size[0]}"] if size else []
            rules += ["font-weight: 700"] if re.search(r"\b(700|bold)\b", value) else []
        elif key != "font-family":
            rules.append(rule)
    return "; ".join(rules)
