"""Take the picture of a report that is in `docs/report.md`, with a headless Chromium.

Run from the repository's root, where fairpass and playwright are installed:

    fairpass demo --out runs/demo
    python scripts/report_screenshot.py runs/demo/report.html
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import sync_playwright

TARGET = Path(__file__).resolve().parent.parent / "docs" / "figures" / "report.png"
WIDTH, HEIGHT = 1180, 1000
QUIET = "no-sandbox disable-gpu disable-background-networking disable-component-update disable-sync no-first-run"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, help="a report.html")
    parser.add_argument("--out", type=Path, default=TARGET, metavar="FILE", help="the picture to write")
    parser.add_argument("--section", metavar="NAME", help="what to scroll to, for example threshold")
    parser.add_argument("--dark", action="store_true", help="the dark page")
    options = parser.parse_args(arguments)

    with sync_playwright() as playwright:
        # Without a Chromium of the system, playwright's own.
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=[f"--{flag}" for flag in QUIET.split()]
        )
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="dark" if options.dark else "light"
        )
        page.goto(options.page.resolve().as_uri())
        if options.section:
            page.locator(f"#r1-{options.section}").evaluate("e => e.scrollIntoView({behavior: 'instant'})")
        page.screenshot(path=options.out)
        browser.close()
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
