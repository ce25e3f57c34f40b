"""Plots of curves with their intervals, as SVG and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from pytest_mlebench.reports.attempts_curve import CurvePoint

WIDTH, HEIGHT = 460, 240
LEFT, RIGHT, TOP, BOTTOM = 40, 14, 12, 34
LEGEND_ROW, LETTER, LEGEND_LETTERS = 16, 7.0, 54  # of a legend: rows, a wide letter, a name
# 3 to 1 against white and more, as WCAG asks of graphics (1.4.11); texts are black
COLORS = ("#2f6fd6", "#a87806", "#2e8b57", "#b42318", "#7a4fbf", "#57606a")


@dataclass(frozen=True)
class PlotLine:
    """A curve in coordinates, ready to be drawn."""

    name: str
    color: str
    points: str
    band: str  # its interval, as a polygon
    dots: tuple[tuple[float, float, str], ...]  # x, y, what it says


@dataclass(frozen=True)
class Plot:
    """Curves over one axis, from 0 to 100 percent."""

    name: str  # of its files
    title: str
    axis: str
    curves: Mapping[str, Sequence[CurvePoint]]

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return where the axis has numbers, at most about eight of them."""
        values = sorted({point.x for curve in self.curves.values() for point in curve})
        every = max(1, -(-len(values) // 8))
        return [(self._x(value), f"{value:g}") for value in values[::every]]

    @property
    def levels(self) -> list[tuple[float, str]]:
        """Return where the percents have lines."""
        return [(_y(percent), str(percent)) for percent in range(0, 101, 25)]

    @property
    def lines(self) -> list[PlotLine]:
        """Return the curves in coordinates."""
        return [
            self._line(name, curve, COLORS[number % len(COLORS)])
            for number, (name, curve) in enumerate(self.curves.items())
        ]

    def svg(self) -> str:
        """Return a picture that stands for itself."""
        height = max((y for _, y in self._legend()), default=HEIGHT) + 7
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'font-family="sans-serif" font-size="11"><title>{escape(self.title)}</title>'
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
        ]
        for y, text in self.levels:
            parts.append(
                f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="#d0d7de"/>'
                f'<text x="{LEFT - 5}" y="{y + 4}" text-anchor="end">{text}</text>'
            )
        for x, text in self.ticks:
            parts.append(
                f'<text x="{x}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{text}</text>'
            )
        for line in self.lines:
            parts.append(
                f'<polygon points="{line.band}" fill="{line.color}" opacity="0.15"/>'
                f'<polyline points="{line.points}" fill="none" stroke="{line.color}"/>'
            )
            parts += [
                f'<circle cx="{x}" cy="{y}" r="3" fill="{line.color}">'
                f"<title>{escape(text)}</title></circle>"
                for x, y, text in line.dots
            ]
        for (x, y), line in zip(self._legend(), self.lines, strict=True):
            parts.append(
                f'<circle cx="{x + 4}" cy="{y - 4}" r="4" fill="{line.color}"/>'
                f'<text x="{x + 12}" y="{y}">{escape(line.name[:LEGEND_LETTERS])}</text>'
            )
        end = f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 5}" text-anchor="end">'
        parts.append(f"{end}{escape(self.axis)}</text>")
        return "\n".join([*parts, "</svg>"]) + "\n"

    def csv(self) -> str:
        """Return the figures: a row for each point."""
        out = io.StringIO(newline="")
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("curve", self.axis, "percent", "low", "high"))
        for name, curve in self.curves.items():
            for point in curve:
                row = (f"{value:.4f}" for value in (point.value, point.low, point.high))
                writer.writerow((name, f"{point.x:g}", *row))
        return out.getvalue()

    def _legend(self) -> list[tuple[int, int]]:
        """Return where the entries of the legend are: in rows below the axis, none over another."""
        places, x, y = [], LEFT, HEIGHT + LEGEND_ROW
        for name in self.curves:
            width = 24 + int(LETTER * min(len(name), LEGEND_LETTERS))
            if x > LEFT and x + width > WIDTH - RIGHT:
                x, y = LEFT, y + LEGEND_ROW
            places.append((x, y))
            x += width
        return places

    def _line(self, name: str, curve: Sequence[CurvePoint], color: str) -> PlotLine:
        ordered = sorted(curve, key=lambda point: point.x)
        upper = [f"{self._x(point.x)},{_y(point.high)}" for point in ordered]
        lower = [f"{self._x(point.x)},{_y(point.low)}" for point in reversed(ordered)]
        dots = tuple(
            (
                self._x(point.x),
                _y(point.value),
                f"{name}, {self.axis} {point.x:g}: {point.text}",
            )
            for point in ordered
        )
        return PlotLine(
            name,
            color,
            " ".join(f"{x},{y}" for x, y, _ in dots),
            " ".join((*upper, *lower)),
            dots,
        )

    def _x(self, value: float) -> float:
        values = [point.x for curve in self.curves.values() for point in curve]
        low, high = min(values), max(values)
        if low == high:
            return round((LEFT + WIDTH - RIGHT) / 2, 1)
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / (high - low), 1)


def _y(percent: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * percent / 100, 1)
