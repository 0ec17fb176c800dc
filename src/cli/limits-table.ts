import type { Limits, QueueLimits } from '../client';
import { formatDuration } from '../contract/duration';
import { table } from './table';

/** Weights that are named in the table; `--json` has all of them. */
const SHOWN_WEIGHTS = 5;

const HEADINGS = ['REQUESTS', 'TASK QUEUE', 'TOTAL', 'PER PROJECT', 'WEIGHTS', 'WAITING', 'LAST SET'];

/** What holds, one line for each kind of requests. */
export function limitsTable({ sends, reads }: Limits): string {
  return table(HEADINGS, [row('sends', sends), row('reads', reads)]);
}

function row(kind: string, limits: QueueLimits): string[] {
  const { taskQueue, total, perProject, weights } = limits;
  return [
    kind,
    taskQueue,
    total?.rate ?? 'none',
    perProject?.rate ?? 'none',
    weightsInWords(Object.entries(weights)),
    waitingInWords(limits),
    lastSet(limits),
  ];
}

function weightsInWords(weights: readonly (readonly [string, number])[]): string {
  if (weights.length === 0) return 'none';
  const shown = weights.slice(0, SHOWN_WEIGHTS).map(([key, weight]) => `${key}=${weight}`);
  const more = weights.length - shown.length;
  return shown.join(' ') + (more > 0 ? ` and ${more} more` : '');
}

function waitingInWords({ waiting, oldestMs }: QueueLimits): string {
  return waiting === 0 ? '0' : `${waiting}, oldest ${formatDuration(oldestMs)}`;
}

/** The server keeps no such thing for weights. */
function lastSet({ total, perProject }: QueueLimits): string {
  const [latest] = [total, perProject]
    .filter((limit) => limit !== null)
    .sort((one, other) => (other.setAt ?? '').localeCompare(one.setAt ?? ''));
  if (latest === undefined) return '-';
  const { setAt, setBy } = latest;
  return (
    [setAt === null ? '' : `${setAt.slice(0, 19)}Z`, setBy === null ? '' : `by ${setBy}`].join(' ').trim() ||
    '-'
  );
}
