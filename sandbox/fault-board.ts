import type { AgentJob } from '../src/core/job';
import type { AlterContext, FaultEffect, Operation } from './fault-row';
import { checkFault, type FaultOrder, type FaultSetting } from './fault-setting';
import { covers, type JobKey } from './jobs';
import type { Random } from './random';

type EffectOf<K extends FaultEffect['kind']> = Extract<FaultEffect, { kind: K }>;

/** A fault that strikes: its name for the journal, its effect, and its values. */
export interface Strike<K extends FaultEffect['kind'] = FaultEffect['kind']> {
  readonly name: string;
  readonly effect: EffectOf<K>;
  readonly values: FaultOrder['values'];
}

/** A fault that is switched on, as it is reported. */
export interface FaultReport {
  readonly name: string;
  readonly projectId: string;
  readonly jobId: string;
  /** On how many requests it has acted. */
  readonly struck: number;
  /** On how many more it will act; null: until it is cleared. */
  readonly left: number | null;
}

interface ActiveFault {
  readonly order: FaultOrder;
  struck: number;
  skipped: number;
}

/** The faults that are switched on. A request meets them in the order in which they were set. */
export class FaultBoard {
  private faults: ActiveFault[] = [];

  constructor(private readonly random: Random) {}

  /** @throws FaultSettingError */
  set(setting: FaultSetting): void {
    this.faults.push({ order: checkFault(setting), struck: 0, skipped: 0 });
  }

  /** Switches off what was set for exactly this target, or with no target everything; with a name, only that fault. */
  clear(target?: JobKey, name?: string): void {
    this.faults = this.faults.filter(({ order }) => {
      const here =
        target === undefined || (order.projectId === target.projectId && order.jobId === target.jobId);
      return !(here && (name === undefined || order.name === name));
    });
  }

  /** What is switched on for a target, or at all. */
  report(target?: JobKey): FaultReport[] {
    return this.faults
      .filter(({ order }) => target === undefined || covers(order, target))
      .map(({ order: { name, projectId, jobId, times }, struck }) => ({
        name,
        projectId,
        jobId,
        struck,
        left: times === Infinity ? null : times - struck,
      }));
  }

  /** The first fault of a kind that strikes this request; it counts as having acted. */
  strike<K extends FaultEffect['kind']>(
    kind: K,
    key: JobKey,
    operation: Operation,
    accepts: (strike: Strike<K>) => boolean = () => true,
  ): Strike<K> | undefined {
    for (const fault of this.facing(key, operation)) {
      const { name, row, values } = fault.order;
      if (row.effect.kind !== kind) continue;
      // The kind was compared just now; the compiler can't carry that over to the type parameter.
      const strike: Strike<K> = { name, effect: row.effect as EffectOf<K>, values };
      if (!accepts(strike) || !this.isDue(fault)) continue;
      fault.struck += 1;
      return strike;
    }
    return undefined;
  }

  /** The job after every alteration that strikes, one upon the other, and the names of those. */
  alter(
    job: AgentJob,
    key: JobKey,
    operation: Operation,
    context: Omit<AlterContext, 'struck' | 'limited'>,
  ): { job: AgentJob; names: string[] } {
    const names: string[] = [];
    let altered = job;
    for (const fault of this.facing(key, operation)) {
      const { name, row, values, times } = fault.order;
      if (row.effect.kind !== 'alter') continue;
      const limited = times !== Infinity;
      const next = row.effect.alter(altered, values, { ...context, struck: fault.struck, limited });
      if (next === altered || !this.isDue(fault)) continue;
      fault.struck += 1;
      altered = next;
      names.push(name);
    }
    return { job: altered, names };
  }

  private facing(key: JobKey, operation: Operation): ActiveFault[] {
    return this.faults.filter(
      ({ order, struck }) =>
        struck < order.times && order.operations.includes(operation) && covers(order, key),
    );
  }

  private isDue(fault: ActiveFault): boolean {
    if (fault.skipped < fault.order.skip) {
      fault.skipped += 1;
      return false;
    }
    return fault.order.chance === 1 || this.random() < fault.order.chance;
  }
}
