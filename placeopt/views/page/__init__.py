"""Write reports as a single HTML file that needs neither network nor server.

The page combines a template (page.html, page.css), some small scripts, and the data:

    data      JSON in a script element that browsers do not run; every < is escaped, so no name can end the element
    arrays    all long arrays, concatenated, deflated and in base64 (`placeopt.views.page.packing`)
    policy    a content security policy with the hashes of style and script: nothing else runs, nothing is fetched

The scripts form one module because browsers do not load a second module from a local file. All texts of the data
become text nodes, so names are never markup. 36,000 tasks on 60 devices redraw in about ten milliseconds
(benchmarks/page_speed.py): rows are sorted, visible tasks are found by bisection, and tasks narrower than two pixels
are drawn together.
"""

from __future__ import annotations

from placeopt.views.page.assembly import comparison_page, plan_page, result_page, write_page, write_report

__all__ = ["comparison_page", "plan_page", "result_page", "write_page", "write_report"]
