"""A hook of mkdocs: links to files outside docs/ become plain text, because the site has only the pages.

The repository itself keeps the links; test/python/test_docs_pages.py checks them there.
"""

from __future__ import annotations

import re

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?!(?:guide|design|reference)/|index\.md|levels\.svg)[^)]*\)")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Returns the text of a page of docs/guide, docs/design or docs/reference as the site shows it."""
    return _OUTSIDE.sub(r"\1", markdown)
