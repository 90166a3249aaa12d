"""A slider in a real browser, from a file: it shows one frame at a time, by its keys."""

import matplotlib.pyplot as plt

from ledger import sliders

LABELS = ["slope -2", "slope -1", "slope 0"]


def test_it_shows_one_frame_at_a_time(tmp_path, chromium):
    fig = plt.figure(figsize=(1, 1))
    page = sliders.document("Slope", [sliders.frame(fig)] * 3, LABELS, 1, 100)
    file = tmp_path / "slider.html"
    file.write_text(f"<!doctype html>{page}", encoding="utf-8")
    window, faults = chromium.new_page(), []
    window.on("console", lambda message: faults.append(message.text))
    window.on("pageerror", lambda error: faults.append(str(error)))
    window.goto(f"file://{file}")
    slider = window.locator("input")
    slider.focus()
    for key, shown in (("ArrowRight", 2), ("Home", 0), ("ArrowRight", 1)):
        slider.press(key)
        visible = [image.is_visible() for image in window.locator("img").all()]
        assert visible == [k == shown for k in range(3)]
        assert window.locator("output").text_content() == LABELS[shown]
        assert slider.get_attribute("aria-valuetext") == LABELS[shown]
    assert faults == []
