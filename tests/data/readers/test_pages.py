"""Folders of pages: texts, labels and links as Obsidian, MkDocs, Sphinx and browsers see them."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from vhe.data.network import TextNetwork
from vhe.data.readers.html import read_html
from vhe.data.readers.markdown import read_markdown
from vhe.data.readers.restructuredtext import read_rst
from vhe.data.sources import read
from vhe.errors import VHEError

Tree = Callable[[dict[str, str]], Path]  # the fixture


def links(network: TextNetwork) -> set[tuple[object, object]]:
    return {(network.ids[i], network.ids[j]) for i, j in network.edges.tolist()}


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("[[Red fox]]", "animals/Red Fox"),
        ("[[red fox#habitat|the fox]]", "animals/Red Fox"),
        ("[[ANIMALS/red fox]]", "animals/Red Fox"),
        ("[[Red Fox.md]]", "animals/Red Fox"),
        ("![[Red Fox]]", "animals/Red Fox"),
        ("| [[Red Fox\\|fox]] |", "animals/Red Fox"),
        ("[[Vulpes]]", "animals/Red Fox"),  # an alias
        ("[fox](animals/Red%20Fox.md#habitat)", "animals/Red Fox"),
        ("[fox](<animals/Red Fox.md> 'a title')", "animals/Red Fox"),
        ("[fox](./animals/../animals/red%20fox)", "animals/Red Fox"),
        ("[fox][1]\n\n[1]: animals/Red%20Fox.md", "animals/Red Fox"),
        ("[the  Fox][]\n\n[The fox]: <animals/Red%20Fox.md>", "animals/Red Fox"),
        ("[fox]\n\n[fox]: animals/Red%20Fox.md 'title'", "animals/Red Fox"),
        ("[![picture](a.png)](animals/Red%20Fox.md)", "animals/Red Fox"),
        ("[all](animals/)", "animals/index"),
        ("[all](/animals/)", "animals/index"),
        ("[all](../start/animals/)", None),  # a missing page
        ('[all]({{< ref "animals/index.md" >}})', "animals/index"),
        ("[site](/docs/animals/)", "animals/index"),
    ],
)
def test_markdown_links(tree: Tree, link: str, target: str | None) -> None:
    network = read(
        tree(
            {
                "start.md": f"# Start\n\nSome words {link} and more.\n",
                "animals/Red Fox.md": "---\naliases: [Vulpes, Reynard]\n---\nA fox.",
                "animals/index.md": "# Animals",
            }
        )
    )
    expected = set() if target is None else {("start", target)}
    assert links(network) == expected


@pytest.mark.parametrize(
    "link",
    [
        "[red](../01-animals/02-fox.mdx)",  # the file
        "[red](../animals/fox)",  # its address, without the numbers
        "[red](../animals/red-fox)",  # the id
        "[red](/foxes/red)",  # the slug
        "[red](/docs/animals/red-fox)",
    ],
)
def test_links_of_docusaurus(tree: Tree, link: str) -> None:
    fox = "---\nid: red-fox\nslug: /foxes/red\n---\nimport A from '@site/a';\n\n<A>Fox import</A>"
    folder = tree({"01-animals/02-fox.mdx": fox, "start/a.md": f"# A\n\n{link}"})
    network = read(folder)
    assert links(network) == {("start/a", "01-animals/02-fox")}
    assert network.texts[0] == "02-fox\nFox import"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('!!! warning inline "Take care"\n    of the fox', '"Take care"\nof the fox'),
        (":::tip The fox\n\nruns\n\n:::", "The fox\nruns"),
        ("> [!info]- The fox\n> runs", "The fox\nruns"),
        ("??? note\n    hidden", "hidden"),
        ("Import the fox; see note.", "Import the fox; see note."),
    ],
)
def test_the_marks_of_admonitions_are_not_words(text: str, words: str) -> None:
    assert read_markdown(text, "a.md").text == words


def test_labels_are_the_folders_in_which_pages_differ(tree: Tree) -> None:
    pages = {"docs/index.md": "x", "docs/a/1.md": "x", "docs/b/c/2.md": "x"}
    network = read(tree(pages))
    assert network.labels == ("a", "b", None)
    assert "label: folder" in network.notes


@pytest.mark.parametrize(
    "link",
    [
        "`[[a]]`",
        "``x ` [[a]]``",
        "```\n[[a]]\n```",
        "~~~~ md\n[[a]]\n~~~\n[[a]]\n~~~~",
        "<!-- [[a]] -->",
        "%% [[a]] %%",
        "[a](https://example.org/a.md)",
        "[a](mailto:a.md)",
        "[a](#a)",
        "[[#a]]",
        "[a][missing]",
        "![a](a.png)",
        "[table](data.csv)",
        "[[photo.jpg]]",
    ],
)
def test_what_is_not_a_link(tree: Tree, link: str) -> None:
    network = read(tree({"start.md": f"# Start\n\n{link}\n", "a.md": "# A"}))
    assert links(network) == set()
    assert network.notes == ("2 Markdown pages",)


def test_texts_titles_and_labels(tree: Tree) -> None:
    network = read(
        tree(
            {
                "a.md": '---\ntitle: "The A: page"\ntags: [pets, "cats"]\n---\n# Heading\n\n'
                "**Bold** [[b|words]] and `code`.\n\n```\nhidden = 1\n```\n<b>seen</b>\n",
                "b.md": "---\ntags:\n  - dogs\n  - pets\n---\n## From the heading ##\ntext",
                "c.md": "only text with #pets inline",
            }
        )
    )
    assert network.texts == (
        "The A: page\nHeading\nBold words and code.\nseen",
        "From the heading\ntext",
        "c\nonly text with pets inline",
    )
    assert network.labels == ("cats", "dogs", "pets")  # all pages have pets
    assert "label: most common tag" in network.notes


def test_front_matter_in_toml_and_a_chosen_label(tree: Tree) -> None:
    folder = tree(
        {
            "a.md": "+++\ntitle = 'A'\ncategories = ['x']\nstatus = 'draft'\n+++\ntext",
            "b.md": "---\ncategory: y\nstatus: done # really\n---\n[[a]]",
        }
    )
    assert read(folder).labels == ("x", "y")
    assert read(folder, label="status").labels == ("draft", "done")


def test_the_folder_is_the_label_of_pages_without_tags(tree: Tree) -> None:
    network = read(tree({"x/a.md": "a", "y/b.md": "b", "c.md": "c"}))
    assert network.ids == ("c", "x/a", "y/b")
    assert network.labels == (None, "x", "y")


def test_wikilinks_prefer_the_same_folder(tree: Tree) -> None:
    network = read(
        tree({"x/a.md": "[[b]]", "x/b.md": "", "y/a.md": "[[b]]", "y/b.md": "", "z.md": "[[x/b]]"})
    )
    assert links(network) == {("x/a", "x/b"), ("y/a", "y/b"), ("z", "x/b")}


def test_missing_pages_and_links_out_of_the_folder_are_counted(tree: Tree) -> None:
    folder = tree({"a.md": "[[gone]]\n[x](../../etc/passwd)\n[[b]] [[Gone]]", "b.md": "b"})
    network = read(folder)
    assert links(network) == {("a", "b")}
    assert network.notes == (
        "2 Markdown pages",
        f"1 link out of the folder ignored (first: '../../etc/passwd' at {folder}/a.md:2)",
        f"2 links to missing pages skipped (first: 'gone' at {folder}/a.md:1)",
    )
    created = read(folder, on_unknown="create")
    assert links(created) == {("a", "b"), ("a", "gone")}
    with pytest.raises(VHEError, match=r"a\.md:1: unknown vertex id 'gone'"):
        read(folder, on_unknown="error")


def test_hidden_files_and_symbolic_links_are_not_read(tree: Tree, tmp_path: Path) -> None:
    folder = tree({"a.md": "a", ".obsidian/b.md": "b", ".c.md": "c", "node_modules/d.md": "d"})
    (tmp_path / "secret.md").write_text("secret")
    (folder / "loop").symlink_to(folder)
    (folder / "outside.md").symlink_to(tmp_path / "secret.md")
    network = read(folder)
    assert network.ids == ("a",)
    assert network.notes == ("1 Markdown page", "ignored: 2 symbolic links")


def test_restructuredtext(tree: Tree) -> None:
    network = read(
        tree(
            {
                "index.rst": "=====\nStart\n=====\n\n.. toctree::\n   :maxdepth: 2\n\n   guide/a\n"
                "   The B <guide/b>\n\nSee :ref:`a label <label-b>`.\n",
                "guide/a.rst": "A page\n======\n\n:doc:`b` and :doc:`/index`; ``code``::\n\n"
                "    hidden = :doc:`gone`\n\n.. code-block:: python\n\n   hidden\n\nAfter.\n",
                "guide/b.rst": ".. _label-b:\n\nB\n---\n\n`words <a.rst>`_ `url <https://x.org>`__\n"
                "\n.. a comment :doc:`gone`\n",
            }
        )
    )
    assert links(network) == {
        ("index", "guide/a"),
        ("index", "guide/b"),
        ("guide/a", "guide/b"),
        ("guide/a", "index"),
        ("guide/b", "guide/a"),
    }
    assert network.notes[0] == "3 reStructuredText pages"
    assert not any("missing" in note for note in network.notes)
    text = network.texts[network.index("guide/a")]
    assert text.startswith("A page\n")
    assert "After." in text
    assert "hidden" not in text


def test_html(tree: Tree) -> None:
    page = (
        "<html><head><title>{0}</title><script>var x</script></head><body><nav><a href='b.html'>"
        "menu</a></nav><main><h1>{0}</h1><p>Words &amp; more <a href='{1}'>link</a></p>"
        "<pre>code</pre></main><footer><a href='c.html'>foot</a></footer></body></html>"
    )
    network = read(
        tree(
            {
                "a.html": page.format("A", "sub/c.html#x"),
                "b.html": page.format("B", "https://example.org/a.html"),
                "sub/c.html": page.format("C", "../b.html"),
            }
        )
    )
    assert links(network) == {("a", "sub/c"), ("sub/c", "b")}
    assert network.texts[0] == "A\nWords & more link"


def test_html_is_ignored_beside_its_sources(tree: Tree) -> None:
    network = read(tree({"a.md": "[b](b.md) [c](c.html)", "b.md": "b", "a.html": "", "c.html": ""}))
    assert network.ids == ("a", "b")
    assert network.notes == ("2 Markdown pages", "ignored: 2 other files")


@pytest.mark.parametrize("reader", [read_markdown, read_rst, read_html])
@pytest.mark.parametrize(
    "text",
    [
        *("", "[" * 50_000, "<!--" * 50_000, "`" * 50_001, "[[" * 50_000, "[a](" * 50_000),
        *("---\n" * 9, "<" * 50_000, "`a <" * 20_000, ".. " * 30_000, "[x]: " * 20_000),
        *("\n".join("` ``" * 20_000), "<![[ x", "<![" * 20_000),
        *("# A" + " " * 50_000 + "x", "[a](" + " " * 50_000, "x" + "`" * 50_000),
        *(" " * 50_000 + "x", ":" * 50_000, ":a" * 25_000, "<a " * 20_000),
    ],
)
def test_odd_pages_are_read_in_linear_time(reader: Callable[..., object], text: str) -> None:
    began = time.process_time()
    reader(text, "page")
    assert time.process_time() - began < 2  # those that took quadratic time: up to minutes


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"a.txt": "text"}, "is a folder without pages.* give one of these"),
        ({"a.pdf": "", "b.docx": ""}, r"convert its \.docx, \.pdf files to one of these"),
        ({"a.md": "+++\nx = \n+++\n"}, r"a\.md:1: the front matter is not TOML"),
        ({"a.md": "text\0"}, r"a\.md:1: byte 5 of the line is NUL"),
    ],
)
def test_errors_of_pages(tree: Tree, files: dict[str, str], sentence: str) -> None:
    with pytest.raises(VHEError, match=sentence):
        read(tree(files))
