"""Names by which columns, keys and attributes are recognised; the first that exists is taken.

Case, spaces and punctuation do not count: `Abstract Note` is `abstract_note`. The text is the
column `text`, or else a title joined with an abstract.
"""

SYNONYMS = {
    "id": ("id", "vertex", "node", "name", "key", "citation key", "paper id", "node id", "doi"),
    "text": ("text",),
    "title": ("title", "headline", "document title", "article title"),
    "abstract": ("abstract", "abstract note", "description", "summary", "body", "content"),
    "label": (
        *("label", "class", "group", "category", "subject", "section", "topic", "collection"),
        *("modularity class", "tags", "manual tags", "keywords", "author keywords"),
    ),
    "source": ("source", "from", "src", "head", "u", "citing", "source id", "citing id"),
    "target": ("target", "to", "dst", "tail", "v", "cited", "target id", "cited id"),
    "vector": ("vector",),
    "weight": ("weight",),
    "references": ("references", "referenced works", "cites", "links", "cited references"),
}
TAGS = ("tags", "manual tags", "keywords", "author keywords")  # labels with several values
