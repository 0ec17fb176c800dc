import { table } from '../src/cli/render/text';
import type { Latency, LatencyFigures } from './latency';
import { type Column, medianOf, ratioOf, type Series, spreadOf } from './throughput';

/** A column of the table: its heading, and how a figure is written. */
const COLUMNS: readonly (readonly [Column, string, (figure: number) => string])[] = [
  ['followUpsPerSecond', 'follow-ups/s', (figure) => figure.toFixed(2)],
  ['serverCpuSeconds', 'server CPU ms', milliseconds],
  ['workerCpuSeconds', 'worker CPU ms', milliseconds],
  ['events', 'events', whole],
  ['bytes', 'bytes', whole],
  ['actions', 'actions', whole],
  ['workflowTasks', 'workflow tasks', whole],
  ['busyCores', 'cores busy', (figure) => figure.toFixed(1)],
  ['othersCores', 'by others', (figure) => figure.toFixed(1)],
];

/** How loaded the machine was: neither spread nor ratio of it says anything. */
const OF_THE_MACHINE: readonly Column[] = ['busyCores', 'othersCores'];

/** Medians of the batches, ± half their spread where it is a hundredth or more, and the ratio to `reference`. */
export function throughputTable(all: readonly Series[], reference: string): string {
  const rows = all.map((series) => {
    const { polls } = series.length;
    const base = all.find(({ contestant, length }) => contestant === reference && length.polls === polls);
    const cells = COLUMNS.map(([column, , write]) => {
      const figure = write(medianOf(series, column));
      if (OF_THE_MACHINE.includes(column)) return figure;
      const percent = Math.round(spreadOf(series, column) * 50);
      const spread = percent > 0 ? `±${percent}%` : '';
      const ratio =
        base === undefined || base === series ? '' : ` ×${ratioOf(series, base, column).toFixed(2)}`;
      return figure + spread + ratio;
    });
    return [String(polls), series.contestant, String(series.length.followUps), ...cells];
  });
  return table(['polls', 'workflow', 'at once', ...COLUMNS.map(([, heading]) => heading)], rows);
}

/** Milliseconds, median and 95th percentile. */
export function latencyLine({ median, p95 }: LatencyFigures): string {
  const span = (name: keyof Latency): string => `${median[name]} ms (p95 ${p95[name]} ms)`;
  return `one at a time: start → POST ${span('startToPost')}; job done → result ${span('doneToResult')}`;
}

function milliseconds(seconds: number): string {
  return (seconds * 1_000).toFixed(1);
}

function whole(figure: number): string {
  return Number.isInteger(figure) ? String(figure) : figure.toFixed(1);
}
