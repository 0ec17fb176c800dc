import { formatDuration } from '../../src/core/units';
import { OTHERS, OURS } from './schedules';
import { allowedLatenessMs, type Simulation, TURNS_MS } from './simulate';

/** All in pixels. The right margin holds the names of the lines. */
const WIDTH = 780;
const PANEL = { left: 62, width: 580, height: 250, head: 48, foot: 56 };
const PANEL_HEIGHT = PANEL.head + PANEL.height + PANEL.foot;
const HEIGHT = 2 * PANEL_HEIGHT;
/** The least distance of two names, so that they don't overlap. */
const NAME_DISTANCE = 17;

const TURN_LABELS_MS = TURNS_MS.filter((_, index) => ![4, 8].includes(index));
const SECOND = 1_000;

interface Axis {
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly { readonly at: number; readonly label: string }[];
}

interface Line {
  readonly name: string;
  readonly className: string;
  readonly values: readonly number[];
}

const X_AXIS: Axis = {
  from: Math.min(...TURNS_MS),
  to: Math.max(...TURNS_MS),
  ticks: TURN_LABELS_MS.map((at) => ({ at, label: formatDuration(at) })),
};

const POLLS_AXIS: Axis = {
  from: 1,
  to: 40_000,
  ticks: [1, 10, 100, 1_000, 10_000].map((at) => ({ at, label: at.toLocaleString('en-US') })),
};

const LATENESS_AXIS: Axis = {
  from: SECOND,
  to: 7_200 * SECOND,
  ticks: [1, 10, 60, 600, 3_600].map((s) => ({ at: s * SECOND, label: formatDuration(s * SECOND) })),
};

/** Colours that keep their contrast on the background of their scheme; a line has a dash of its own beside. */
const STYLE = `
    text { font: 13px system-ui, sans-serif; fill: #333 }
    .title { font-weight: 600; font-size: 14px }
    .paper { fill: #fff } .grid { stroke: #ddd } .line { fill: none; stroke-width: 2 }
    .ours { stroke: #c2410c; stroke-width: 3.5 } text.ours { fill: #c2410c; stroke: none; font-weight: 600 }
    .other0 { stroke: #1d4ed8; stroke-dasharray: 9 4 } text.other0 { fill: #1d4ed8; stroke: none }
    .other1 { stroke: #15803d; stroke-dasharray: 2 4 } text.other1 { fill: #15803d; stroke: none }
    .other2 { stroke: #7e22ce; stroke-dasharray: 9 4 2 4 } text.other2 { fill: #7e22ce; stroke: none }
    .other3 { stroke: #a16207; stroke-dasharray: 14 5 } text.other3 { fill: #a16207; stroke: none }
    .target { stroke: #777; stroke-width: 1.5; stroke-dasharray: 4 4 } text.target { fill: #666; stroke: none }
    @media (prefers-color-scheme: dark) {
      text { fill: #ccc } .paper { fill: #161b22 } .grid { stroke: #30363d }
      .ours { stroke: #fb923c } text.ours { fill: #fb923c }
      .other0 { stroke: #60a5fa } text.other0 { fill: #60a5fa }
      .other1 { stroke: #4ade80 } text.other1 { fill: #4ade80 }
      .other2 { stroke: #c084fc } text.other2 { fill: #c084fc }
      .other3 { stroke: #facc15 } text.other3 { fill: #facc15 }
      .target { stroke: #999 } text.target { fill: #aaa }
    }`;

/** The picture of docs/performance.md: polls and lateness over the length of the turn, all axes logarithmic. */
export function cadencePlot({ rows }: Simulation): string {
  const lines = (ours: readonly number[], others: (index: number) => number[]): Line[] => [
    ...OTHERS.map(({ name }, index) => ({ name, className: `other${index}`, values: others(index) })),
    { name: OURS.name, className: 'ours', values: ours },
  ];
  const polls = lines(
    rows.map(({ ours }) => ours.meanPolls),
    (index) => rows.map(({ others }) => others[index]?.meanPolls ?? NaN),
  );
  const lateness = lines(
    rows.map(({ ours }) => ours.p95LatenessMs),
    (index) => rows.map(({ others }) => others[index]?.p95LatenessMs ?? NaN),
  );
  const target = { name: 'target', className: 'target', values: TURNS_MS.map(allowedLatenessMs) };
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-labelledby="title">
  <title id="title">Polls and lateness of detection over the length of a turn, by schedule</title>
  <style>${STYLE}
  </style>
  <rect class="paper" width="${WIDTH}" height="${HEIGHT}" rx="6"/>
${panel('Polls of one turn, mean', POLLS_AXIS, polls, PANEL.head)}
${panel('Lateness of detection, 95th percentile (target: a tenth of the age and a second)', LATENESS_AXIS, [target, ...lateness], PANEL_HEIGHT + PANEL.head)}
</svg>
`;
}

function panel(title: string, yAxis: Axis, lines: readonly Line[], top: number): string {
  const x = (value: number): number => PANEL.left + PANEL.width * position(value, X_AXIS);
  const y = (value: number): number => top + PANEL.height * (1 - position(value, yAxis));
  const bottom = top + PANEL.height;
  const right = PANEL.left + PANEL.width;
  const parts = [
    text(PANEL.left, top - 16, title, 'title'),
    ...yAxis.ticks.flatMap(({ at, label }) => [
      `<path class="grid" d="M${PANEL.left} ${px(y(at))}H${right}"/>`,
      text(PANEL.left - 8, y(at) + 4.5, label, '', 'end'),
    ]),
    ...X_AXIS.ticks.flatMap(({ at, label }) => [
      `<path class="grid" d="M${px(x(at))} ${top}V${bottom}"/>`,
      text(x(at), bottom + 20, label, '', 'middle'),
    ]),
    text(PANEL.left + PANEL.width / 2, bottom + 42, 'length of the turn', '', 'middle'),
    ...lines.map(({ className, values }) => {
      const points = values.map((value, index) => `${px(x(TURNS_MS[index] ?? NaN))} ${px(y(value))}`);
      return `<path class="line ${className}" d="M${points.join('L')}"/>`;
    }),
    ...apart(lines.map((line) => ({ ...line, at: y(line.values.at(-1) ?? NaN) }))).map(
      ({ name, className, at }) => text(right + 10, at + 4.5, name, className),
    ),
  ];
  return parts.map((part) => `  ${part}`).join('\n');
}

/** Names moved apart: each stands halfway between where it would be if all made room downwards, or all upwards. */
function apart<T extends { readonly at: number }>(names: readonly T[]): T[] {
  const sorted = [...names].sort((one, other) => one.at - other.at);
  const places = sorted.map(({ at }) => at);
  const downwards = placesInOrder(places);
  const upwards = placesInOrder(places.map((at) => -at).reverse()).reverse();
  return sorted.map((name, index) => ({
    ...name,
    at: ((downwards[index] ?? name.at) - (upwards[index] ?? -name.at)) / 2,
  }));
}

/** Rising places, each at least {@link NAME_DISTANCE} behind the one before. */
function placesInOrder(rising: readonly number[]): number[] {
  let least = -Infinity;
  return rising.map((wanted) => {
    const at = Math.max(wanted, least);
    least = at + NAME_DISTANCE;
    return at;
  });
}

/** Where a value stands on a logarithmic axis, 0 at its beginning and 1 at its end. */
function position(value: number, { from, to }: Axis): number {
  return Math.log(value / from) / Math.log(to / from);
}

function text(x: number, y: number, words: string, className: string, anchor = 'start'): string {
  const classes = className === '' ? '' : ` class="${className}"`;
  return `<text${classes} x="${px(x)}" y="${px(y)}" text-anchor="${anchor}">${words}</text>`;
}

/** Tenths of a pixel: what a picture needs, and no more than what every machine computes alike. */
function px(value: number): string {
  return value.toFixed(1);
}
