"""The parts of an HTML page, for tests of its content."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """Ids, links, everything that would be fetched, the tags with the names of their attributes, and the words.

    ``tags`` and ``words`` leave pictures out, whose tags are in ``drawn``; ``labels`` are those of pictures and tables.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.tags: list[tuple[str, ...]] = []
        self.drawn: list[tuple[str, ...]] = []
        self.labels: list[str] = []
        self.words = ""
        self.inside = False  # a picture
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = self.inside or tag == "svg"
        (self.drawn if self.inside else self.tags).append((tag, *(name for name, _ in attrs)))
        for name, value in attrs:
            value = value or ""
            if name == "id":
                self.ids.append(value)
            elif name in ("aria-label", "alt"):
                self.labels.append(value)
            elif name in ("href", "xlink:href") and value.startswith("#"):
                self.links.append(value[1:])
            elif name in ("src", "href", "xlink:href", "srcset", "data") and not value.startswith("data:"):
                self.fetched.append(value)

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "svg"

    def handle_data(self, data: str) -> None:
        self.words += "" if self.inside else data
