"""Configuration of Sphinx: `make docs` builds the manual in site/, without external requests."""

from pathlib import Path

from docutils.utils.math.latex2mathml import tex2mathml

import vhe

HERE = Path(__file__).parent

project, author = "vhe", "The vhe contributors"
copyright = "the vhe contributors, Apache License 2.0"
version = release = vhe.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
# links to files outside docs/ are valid in the repository
suppress_warnings = ["myst.xref_missing", "toc.not_included"]

html_theme = "furo"
html_title = f"vhe {vhe.__version__}"
html_copy_source = False
html_extra_path = ["extra"] if (HERE / "extra").exists() else []
html_theme_options = {"footer_icons": []}
html_static_path = ["static"]
html_css_files = ["vhe.css"]
html_search_scorer = str(HERE / "search_scorer.js")

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = False


def as_mathml(translator, node):
    """Write an equation as MathML, which browsers render without scripts."""
    block = node.__class__.__name__ == "math_block"
    # Chromium displaces a stretchy norm that carries an exponent.
    equation = tex2mathml(node.astext(), as_block=block)
    translator.body.append(equation.replace("<mo>‖</mo>", '<mo stretchy="false">‖</mo>'))
    from docutils.nodes import SkipNode

    raise SkipNode


def setup(app):
    from docutils import nodes

    app.add_node(nodes.math, override=True, html=(as_mathml, None))
    app.add_node(nodes.math_block, override=True, html=(as_mathml, None))
