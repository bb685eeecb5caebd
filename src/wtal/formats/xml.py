"""XML as text: escaped, and without the characters that XML has no way to write."""

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from wtal.formats.rows import warn

#: what XML 1.0 cannot hold, and the carriage return, which readers take for a line break
_FORBIDDEN = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(root: Element) -> str:
    """The document with this root, indented; forbidden characters become �, and are counted in a warning.

    >>> root = Element("a", b="<script>")
    >>> print(xml_text(root), end="")
    <?xml version="1.0" encoding="UTF-8"?>
    <a b="&lt;script&gt;" />
    """
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    text, count = _FORBIDDEN.subn("�", text)
    if count:
        warn(f"{count} character(s) in names cannot be written in XML and became �")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
