#!/usr/bin/env python3
"""Takes the page's pictures in docs/: page-chat.png, page-dark.png, page-phone.png.

Usage: tools/page_screenshots.py [PROGRAM] [MODEL]

The server answers a handful of other clients meanwhile, so that the panel has something to show. Needs chromium
(tools/install.sh page).
"""
import json
import pathlib
import shutil
import sys
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from playwright.sync_api import sync_playwright  # noqa: E402
import served  # noqa: E402

EDIT = """Rename value to item in this function and change nothing else.

```python
def total(values):
    result = 0
    for value in values:
        result += value
    return result
```"""
OTHERS = json.loads((ROOT / "bench" / "bench_prompts.json").read_text())["edit"]


def keep_asking(url, messages, over):
    body = json.dumps({"messages": messages, "temperature": 0, "max_tokens": 200}).encode()
    while not over.is_set():
        request = urllib.request.Request(url + "/v1/chat/completions", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=60).read()


def converse(page):
    page.click("#open-settings")
    page.fill("[name=temperature]", "0")
    page.click("#settings-form .primary")
    for i, text in enumerate([EDIT, "What is 23 + 45?"]):
        page.fill("#input", text)
        page.press("#input", "Enter")
        page.locator(".model-said .after button").nth(i).wait_for()
    time.sleep(2.5)  # for the panel to look again


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "rondo")
    model = sys.argv[2] if len(sys.argv) > 2 else str(ROOT / "models" / "rondo-demo")
    over = threading.Event()
    server, url = served.start(program, model)
    with sync_playwright() as playwright:
        others = [threading.Thread(target=keep_asking, args=(url, messages, over)) for messages in OTHERS[:5]]
        for other in others:
            other.start()
        time.sleep(15)  # for the last minute to have a shape
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(url)
        converse(page)
        page.screenshot(path=ROOT / "docs" / "page-chat.png")
        page.emulate_media(color_scheme="dark")
        time.sleep(1.5)
        page.screenshot(path=ROOT / "docs" / "page-dark.png")
        phone = browser.new_page(viewport={"width": 375, "height": 740}, device_scale_factor=2, is_mobile=True, has_touch=True)
        phone.goto(url)
        converse(phone)
        phone.screenshot(path=ROOT / "docs" / "page-phone.png")
        over.set()
        for other in others:
            other.join()
        browser.close()
    served.stop(server)
    for picture in sorted((ROOT / "docs").glob("page-*.png")):
        print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
