"""Reports as one web page: a file that needs no network and no server, and shows any name it is given as text.

The page is a template (page.html, page.css) and a few small scripts, put into one file with their data:

    data      JSON in a script element that no browser runs, every < escaped, so that no name can end it
    arrays    all long arrays behind each other, deflated and in base64 (`placeopt.views.page.packing`)
    policy    a content security policy with the hashes of style and script: nothing else runs, nothing is fetched

The scripts are concatenated into one module, for browsers load no second module from a file. All texts of the data
become text nodes. 36,000 tasks on 60 devices redraw in some ten milliseconds (benchmarks/page_speed.py): rows are
sorted, what is visible is found by bisection, and tasks narrower than two pixels are drawn together.
"""

from __future__ import annotations

from placeopt.views.page.assembly import comparison_page, plan_page, result_page, write_page, write_report

__all__ = ["comparison_page", "plan_page", "result_page", "write_page", "write_report"]
