import type { Timers } from '../clock';
import type { RandomSource } from '../random-source';
import { fromPayload } from './history';
import type { Run } from './run';

/** A run in the visibility list. */
export type Listed = Pick<Run, 'start' | 'status' | 'startedAt' | 'closedAt' | 'memo' | 'searchAttributes'>;

/** The visibility list, which shows each run as it was some time ago. */
export class Visibility {
  private readonly versions = new Map<Run, { readonly from: number; readonly listed: Listed }[]>();

  /** @param lagMs the maximum time after which the list shows a change */
  constructor(
    private readonly clock: Timers,
    private readonly random: RandomSource,
    private readonly lagMs: number,
  ) {}

  changed(run: Run): void {
    const versions = this.versions.get(run) ?? [];
    const { start, status, startedAt, closedAt, memo, searchAttributes } = run;
    const listed = { start, status, startedAt, closedAt, memo, searchAttributes };
    const lag = this.random.between('list lag', 0, this.lagMs, 2);
    const from = Math.max(this.clock.now + lag, versions.at(-1)?.from ?? 0);
    this.versions.set(run, [...versions, { from, listed }]);
  }

  /** @param knows returns whether the Temporal server still has the run */
  list(query: string, knows: (run: Run) => boolean): Listed[] {
    const conditions = query.split(' AND ').map(parseCondition);
    return [...this.versions]
      .flatMap(([run, versions]) => {
        const latest = versions.findLast(({ from }) => from <= this.clock.now);
        return latest !== undefined && knows(run) ? [latest.listed] : [];
      })
      .filter((listed) => conditions.every((fits) => fits(listed)))
      .sort((one, other) => (one.closedAt === other.closedAt ? 0 : other.closedAt - one.closedAt));
  }
}

/** The operators in the queries of this project. */
const OPERATORS: Readonly<Record<string, (value: unknown, wanted: string) => boolean>> = {
  '=': (value, wanted) => (Array.isArray(value) ? value.includes(wanted) : value === wanted),
  STARTS_WITH: (value, wanted) => String(value).startsWith(wanted),
  '>=': (value, wanted) => Number(value ?? NaN) >= Date.parse(wanted),
  'IS NULL': (value) => value === undefined,
  'IS NOT NULL': (value) => value !== undefined,
};

function parseCondition(text: string): (listed: Listed) => boolean {
  const [, alternatives] = /^\((.*)\)$/.exec(text) ?? [];
  if (alternatives !== undefined) {
    const conditions = alternatives.split(' OR ').map(parseCondition);
    return (listed) => conditions.some((fits) => fits(listed));
  }
  const [, name = '', operator = '', wanted = ''] = /^(\w+) ([^']+?)(?: '(.*)')?$/.exec(text) ?? [];
  const fits = OPERATORS[operator];
  if (fits === undefined) throw new TypeError(`the simulated server does not support the condition ${text}`);
  return ({ start, closedAt, searchAttributes }) => {
    if (name === 'WorkflowType') return fits(start.workflowType, wanted);
    if (name === 'CloseTime') return fits(closedAt === Infinity ? undefined : closedAt, wanted);
    return fits(fromPayload(searchAttributes[name]), wanted);
  };
}
