import { formatDuration } from '../../src/core/units';
import { OTHERS, OURS } from './schedules';
import type { AgainstTargets, Outcome, Simulation } from './simulate';

/** The limits that the defaults of polling have to keep. */
export const LIMITS: AgainstTargets = { maxPolls: 70, maxEvents: 100, p95OfAllowed: 1 };

/** The tables of docs/performance.md, in Markdown as prettier formats it. */
export function cadenceTables(simulation: Simulation): string {
  return [
    'Polls of one turn, on average:',
    byTurn(simulation, ({ meanPolls }) => thousands(Math.round(meanPolls))),
    'From the end of the turn to the poll that sees it, on average and in 95 of 100 turns at most:',
    byTurn(
      simulation,
      ({ meanLatenessMs, p95LatenessMs }) => `${lateness(meanLatenessMs)}, ${lateness(p95LatenessMs)}`,
    ),
    'What the schedule of this project costs in history, at most, and how late it is by its own target:',
    historyTable(simulation),
    'What watching a turn costs at this cadence, on average, beside other ways to poll as often (× is the ratio to `textbookLoop`):',
    costTable(simulation),
    'The targets:',
    targetTable(simulation),
    'What another default would do, one field at a time:',
    alternativeTable(simulation),
  ].join('\n\n');
}

function byTurn({ rows }: Simulation, cell: (outcome: Outcome) => string): string {
  const headings = ['turn', OURS.name, ...OTHERS.map(({ name }) => name)];
  return markdownTable(
    headings,
    rows.map(({ turnMs, ours, others }) => [formatDuration(turnMs), cell(ours), ...others.map(cell)]),
  );
}

function historyTable({ rows }: Simulation): string {
  return markdownTable(
    ['turn', 'events, a timer for each poll', 'events, in two gears', 'p95 lateness ÷ (age ÷ 10 + 1s)'],
    rows.map(({ turnMs, ours, maxEvents }) => [
      formatDuration(turnMs),
      thousands(maxEvents.timersOnly),
      thousands(maxEvents.twoGears),
      ours.p95OfAllowed.toFixed(2),
    ]),
  );
}

function costTable({ costs }: Simulation): string {
  return markdownTable(
    ['turn, way to poll', 'polls', 'events', 'billable actions', 'server CPU, ms'],
    costs.flatMap(({ turnMs, meanPolls, ways }) => {
      const textbook = ways.find(({ name }) => name === '`textbookLoop`')?.cost;
      const cell = (figure: number, base: number): string =>
        `${thousands(Math.round(figure))}${figure === base ? '' : ` (×${(figure / base).toFixed(2)})`}`;
      return ways.map(({ name, cost }) => [
        `${formatDuration(turnMs)}, ${name}`,
        String(Math.round(meanPolls)),
        ...(['events', 'actions', 'serverCpuMs'] as const).map((figure) =>
          cell(cost[figure], textbook?.[figure] ?? NaN),
        ),
      ]);
    }),
  );
}

function targetTable({ targets }: Simulation): string {
  return markdownTable(
    ['target', 'limit', 'simulated, at most'],
    [
      ['polls of a turn of two hours', `${LIMITS.maxPolls}`, `${targets.maxPolls}`],
      ['its history events', `${LIMITS.maxEvents}`, `${targets.maxEvents}`],
      [
        'p95 lateness ÷ (age ÷ 10 + 1s), any turn',
        LIMITS.p95OfAllowed.toFixed(2),
        targets.p95OfAllowed.toFixed(2),
      ],
    ],
  );
}

function alternativeTable({ alternatives }: Simulation): string {
  return markdownTable(
    [
      'changed',
      'polls, 2h',
      'events, 2h',
      'worst p95 ÷ target',
      'p95 lateness, 30s',
      'polls, 12h',
      'p95 lateness, 12h',
    ],
    alternatives.map((each) => [
      each.changed,
      missed(`${each.maxPolls}`, each.maxPolls > LIMITS.maxPolls),
      missed(`${each.maxEvents}`, each.maxEvents > LIMITS.maxEvents),
      missed(each.p95OfAllowed.toFixed(2), each.p95OfAllowed > LIMITS.p95OfAllowed),
      lateness(each.shortP95LatenessMs),
      `${Math.round(each.longMeanPolls)}`,
      lateness(each.longP95LatenessMs),
    ]),
  );
}

/** Emphasized where a target is missed. */
function missed(figure: string, isMissed: boolean): string {
  return isMissed ? `**${figure}**` : figure;
}

function lateness(ms: number): string {
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)}s` : formatDuration(ms);
}

function thousands(count: number): string {
  return count.toLocaleString('en-US');
}

/** A table whose columns but the first are numbers, hence aligned to the right. */
function markdownTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = headings.map((_, column) =>
    Math.max(3, ...[headings, ...rows].map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => pad(cell, column, widths[column] ?? 0)).join(' | ')} |`;
  const rule = widths.map((width, column) =>
    column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`,
  );
  return [line(headings), line(rule), ...rows.map(line)].join('\n');
}

function pad(cell: string, column: number, width: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width);
}
