"""Tokens/s over depth as SVG."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 420, 320  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 60, 44
COLOURS = ["#1257a8", "#62a8e5", "#d9622b", "#2f9c63"]


def text(x, y, words, anchor="middle", size=12, colour="#333"):
    return ('<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" fill="%s">%s</text>' %
            (x, y, anchor, size, colour, escape(words)))


def line(x0, y0, x1, y1, colour, width=1):
    return ('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g"/>' %
            (x0, y0, x1, y1, colour, width))


def tick_step(top):
    """1, 2 or 5 times a power of ten: at most eight ticks."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if top / (step * factor) <= 8:
                return step * factor
        step *= 10


class Panel:
    """What one number of threads reaches."""

    def __init__(self, summary, file, threads, left):
        self.left = left + LEFT
        self.curves = {}
        for engine in summary.engines:
            points = [(case[2], summary.cell("decode", case, engine).tps)
                      for case in summary.cases("decode")
                      if case[:2] == (file, threads) and summary.cell("decode", case, engine)]
            if points:
                self.curves[engine] = points
        every = [point for points in self.curves.values() for point in points]
        self.depths = sorted({depth for depth, _ in every})
        self.step = tick_step(max(tps for _, tps in every))
        self.top = self.step * -(-max(tps for _, tps in every) // self.step)
        self.threads = threads

    def x(self, depth):
        return self.left + (WIDTH - LEFT - RIGHT) * depth / max(1, self.depths[-1])

    def y(self, tps):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * tps / self.top

    def axes(self):
        right = self.left + WIDTH - LEFT - RIGHT
        parts = [text((self.left + right) / 2, TOP - 12,
                      "%d thread%s" % (self.threads, "" if self.threads == 1 else "s"), size=13)]
        for i in range(int(self.top / self.step) + 1):
            y = self.y(i * self.step)
            parts += [line(self.left, y, right, y, "#ddd"),
                      text(self.left - 6, y + 4, "%g" % (i * self.step), "end")]
        parts += [text(self.x(depth), HEIGHT - BOTTOM + 18, str(depth)) for depth in self.depths]
        parts.append(text((self.left + right) / 2, HEIGHT - 8, "positions before the token"))
        return parts

    def draw(self, colours):
        parts = self.axes()
        for engine, points in self.curves.items():
            places = ["%.1f,%.1f" % (self.x(depth), self.y(tps)) for depth, tps in points]
            parts.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' %
                         (" ".join(places), colours[engine]))
            parts += ['<circle cx="%s" cy="%s" r="3" fill="%s"/>' %
                      (*place.split(","), colours[engine]) for place in places]
        return parts


def legend(colours):
    parts, x = [], LEFT
    for engine, colour in colours.items():
        parts += [line(x, 34, x + 20, 34, colour, 2), text(x + 26, 38, engine, "start")]
        x += 46 + 8 * len(engine)
    return parts


def depths(summary):
    """Of the first file, a panel for each number of threads."""
    file = summary.files[0]
    threads = sorted({case[1] for case in summary.cases("decode") if case[0] == file})
    colours = {engine: COLOURS[i % len(COLOURS)] for i, engine in enumerate(summary.engines)}
    parts = [text(LEFT, 20, "%s: tokens/s decoded" % file, "start", 14)] + legend(colours)
    for i, n in enumerate(threads):
        parts += Panel(summary, file, n, i * WIDTH).draw(colours)
    size = (WIDTH * len(threads), HEIGHT)
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" '
            'font-family="sans-serif">\n<rect width="100%%" height="100%%" fill="#fff"/>\n%s\n'
            "</svg>\n" % (*size, *size, "\n".join(parts)))
