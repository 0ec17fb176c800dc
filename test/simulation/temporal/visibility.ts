import type { Timers } from '../clock';
import type { Luck } from '../luck';
import { fromPayload } from './history';
import type { Run } from './run';

/** A run as a list shows it. */
export type Listed = Pick<Run, 'start' | 'status' | 'closedAt' | 'memo' | 'searchAttributes'> & {
  readonly startedAt: number;
};

interface Version {
  readonly from: number;
  readonly listed: Listed;
}

/** What lists are made of: each run as it was a while ago. */
export class Visibility {
  private readonly versions = new Map<Run, Version[]>();

  /** @param lagMs after which a change is shown, at most */
  constructor(
    private readonly clock: Timers,
    private readonly luck: Luck,
    private readonly lagMs: number,
  ) {}

  changed(run: Run): void {
    const versions = this.versions.get(run) ?? [];
    const { start, status, closedAt, memo, searchAttributes, events } = run;
    const listed = { start, status, closedAt, memo, searchAttributes, startedAt: events[0]?.at ?? 0 };
    const lag = this.luck.between('list lag', 0, this.lagMs, 2);
    const from = Math.max(this.clock.now + lag, versions.at(-1)?.from ?? 0);
    const shown = versions.findLastIndex((each) => each.from <= this.clock.now);
    this.versions.set(run, [...versions.slice(Math.max(0, shown)), { from, listed }]);
  }

  /** @param knows whether the server still has it */
  list(query: string, knows: (run: Run) => boolean): Listed[] {
    const clauses = query.split(' AND ').map(clauseOf);
    const shown = [...this.versions].flatMap(([run, versions]) => {
      const latest = versions.findLast(({ from }) => from <= this.clock.now);
      return latest !== undefined && knows(run) ? [latest.listed] : [];
    });
    return shown
      .filter((listed) => clauses.every((fits) => fits(listed)))
      .sort((one, other) => (one.closedAt === other.closedAt ? 0 : other.closedAt - one.closedAt));
  }
}

/** The queries of this project, and no others. */
function clauseOf(clause: string): (listed: Listed) => boolean {
  const [, name = '', operator, value = ''] =
    /^(\w+) (=|STARTS_WITH|>=|IS NULL|IS NOT NULL)(?: '(.*)')?$/.exec(clause) ?? [];
  const valueOf = ({ start, closedAt, searchAttributes }: Listed) => {
    if (name === 'WorkflowType') return start.workflowType;
    if (name === 'CloseTime') return closedAt === Infinity ? undefined : closedAt;
    return fromPayload(searchAttributes[name]);
  };
  switch (operator) {
    case '=':
      return (listed) => valueOf(listed) === value;
    case 'STARTS_WITH':
      return (listed) => String(valueOf(listed)).startsWith(value);
    case '>=':
      return (listed) => Number(valueOf(listed) ?? NaN) >= Date.parse(value);
    case 'IS NULL':
      return (listed) => valueOf(listed) === undefined;
    case 'IS NOT NULL':
      return (listed) => valueOf(listed) !== undefined;
    default:
      throw new TypeError(`the simulated server does not know the condition ${clause}`);
  }
}
