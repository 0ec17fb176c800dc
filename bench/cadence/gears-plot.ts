import { formatDuration } from '../../src/core/units';
import { type Gear, gearsOf } from './cost';
import { OURS } from './schedules';
import { watch } from './simulate';

const MINUTE = 60_000;
const TURN_MS = 12 * MINUTE;

/** All in pixels. */
const WIDTH = 780;
const LEFT = 24;
const AXIS_WIDTH = 732;
const LANE_HEIGHT = 62;
const HEAD = 44;
const MARK_HEIGHT = 18;

const LANES: readonly { readonly gear: Gear; readonly name: string; readonly costs: string }[] = [
  {
    gear: 'timer',
    name: 'a durable timer and a read each',
    costs: '11 events and 2 billable actions a poll',
  },
  {
    gear: 'in-process',
    name: 'in the process of a worker',
    costs: 'no event; a heartbeat (o) every 24 s is a billable action',
  },
  { gear: 'retry', name: 'by retries of the same activity', costs: 'no event; 1 billable action a poll' },
];
const HEIGHT = HEAD + LANES.length * LANE_HEIGHT + 52;

const STYLE = `
    text { font: 13px system-ui, sans-serif; fill: #333 }
    .title { font-weight: 600; font-size: 14px } .costs { fill: #666 }
    .paper { fill: #fff } .grid { stroke: #ddd } .mark { stroke-width: 2.5 }
    .timer { stroke: #1d4ed8 } .in-process { stroke: #c2410c } .retry { stroke: #15803d }
    .heartbeat { fill: none; stroke: #c2410c; stroke-width: 1.5 }
    @media (prefers-color-scheme: dark) {
      text { fill: #ccc } .costs { fill: #aaa } .paper { fill: #161b22 } .grid { stroke: #30363d }
      .timer { stroke: #60a5fa } .in-process { stroke: #fb923c } .retry { stroke: #4ade80 }
      .heartbeat { stroke: #fb923c }
    }`;

/** The picture of the gears: who makes each poll of one turn at the default cadence, without jitter. */
export function gearsPlot(): string {
  const { pollsAtMs } = watch(OURS, TURN_MS, () => 0.5);
  const { polls, heartbeatsAtMs } = gearsOf(pollsAtMs);
  const bottom = HEAD + LANES.length * LANE_HEIGHT;
  const parts = [
    ...Array.from({ length: TURN_MS / MINUTE / 2 + 1 }, (_, index) => index * 2 * MINUTE).flatMap((at) => [
      `<path class="grid" d="M${px(x(at))} ${HEAD}V${bottom}"/>`,
      `<text x="${px(x(at))}" y="${bottom + 18}" text-anchor="middle">${at === 0 ? 'sent' : formatDuration(at)}</text>`,
    ]),
    `<text x="${WIDTH / 2}" y="${bottom + 40}" text-anchor="middle">age of the turn</text>`,
    ...LANES.flatMap(({ gear, name, costs }, index) => {
      const top = HEAD + index * LANE_HEIGHT;
      const markTop = top + 28;
      return [
        `<text x="${LEFT}" y="${top + 16}">${name} <tspan class="costs">(${costs})</tspan></text>`,
        ...pollsAtMs.flatMap((at, poll) =>
          polls[poll] === gear && at <= TURN_MS
            ? [`<path class="mark ${gear}" d="M${px(x(at))} ${markTop}v${MARK_HEIGHT}"/>`]
            : [],
        ),
        ...(gear === 'in-process' ? heartbeatsAtMs : []).map(
          (at) => `<circle class="heartbeat" cx="${px(x(at))}" cy="${markTop + MARK_HEIGHT + 7}" r="3"/>`,
        ),
      ];
    }),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-labelledby="title">
  <title id="title">Who makes the polls of a turn, over its age</title>
  <style>${STYLE}
  </style>
  <rect class="paper" width="${WIDTH}" height="${HEIGHT}" rx="6"/>
  <text class="title" x="${LEFT}" y="26">Who makes the polls of a turn of ${formatDuration(TURN_MS)}, at the default cadence</text>
${parts.map((part) => `  ${part}`).join('\n')}
</svg>
`;
}

function x(ageMs: number): number {
  return LEFT + (AXIS_WIDTH * ageMs) / TURN_MS;
}

/** Tenths of a pixel: what a picture needs, and no more than what every machine computes alike. */
function px(value: number): string {
  return value.toFixed(1);
}
