import { z } from 'zod';
import type { AgentJob } from '../src/contract/job';
import { type Effect, FAULTS, OPERATIONS, type Operation } from './faults';
import { parseWithSchema, InputError, parseJson } from './input';
import type { JobLife } from './job-life';
import { ANY, covers, type JobKey } from './jobs';
import type { Random } from './random';

const settingSchema = z.strictObject({
  name: z.string().refine((name) => Object.hasOwn(FAULTS, name), {
    error: ({ input }) => `there is no fault ${JSON.stringify(input)}; --list-faults shows them all`,
  }),
  projectId: z.string().min(1).default(ANY).describe('acts on jobs of this project only'),
  jobId: z.string().min(1).default(ANY).describe('acts on jobs of this id only'),
  times: z.int().min(1).optional().describe('ends after acting on so many requests'),
  skip: z.int().min(0).default(0).describe('lets the first so many requests pass'),
  chance: z.number().min(0).max(1).default(1).describe('acts with this probability, drawn from the seed'),
  operation: z.enum(OPERATIONS).optional().describe('acts on these requests only'),
  parameters: z.record(z.string(), z.unknown()).default({}).describe("the fault's own, as listed"),
});

/** How a fault is switched on: in tests, as JSON on the command line and as JSON over HTTP. */
export type FaultSetting = z.input<typeof settingSchema>;

interface ActiveFault extends z.output<typeof settingSchema> {
  readonly effect: Effect;
  readonly operations: readonly Operation[];
  actedCount: number;
  skippedCount: number;
}

type EffectOf<K extends Effect['kind']> = Extract<Effect, { kind: K }>;

/** @throws InputError for an unknown fault or a bad parameter */
function activate(setting: unknown): ActiveFault {
  const order = parseWithSchema(settingSchema, setting);
  const { name, operation, parameters } = order;
  const fault = FAULTS[name];
  if (fault === undefined) throw new InputError(`there is no fault ${name}`);
  if (operation !== undefined && !fault.operations.includes(operation)) {
    throw new InputError(`operation: the fault ${name} acts on ${fault.operations.join(' and ')} only`);
  }
  const operations = operation === undefined ? fault.operations : [operation];
  return { ...order, effect: fault.effect(parameters), operations, actedCount: 0, skippedCount: 0 };
}

/** @throws InputError for a text that is no JSON, an unknown fault or a bad parameter */
export function parseFault(json: string): FaultSetting {
  const setting = parseJson(json);
  activate(setting);
  return setting as FaultSetting;
}

/** The faults that are switched on, and the requests that they hold. A request meets them in the order of `set`. */
export class ActiveFaults {
  private faults: ActiveFault[] = [];
  private readonly held = new Set<{ readonly key: JobKey; readonly release: () => void }>();

  constructor(readonly random: Random) {}

  /** @throws InputError */
  set(setting: unknown): void {
    this.faults.push(activate(setting));
  }

  /** Switches off what was set for exactly this target, or everything. What is held stays held. */
  clear(target?: JobKey): void {
    this.faults = this.faults.filter(
      ({ projectId, jobId }) =>
        target !== undefined && !(projectId === target.projectId && jobId === target.jobId),
    );
  }

  /** Waits until the request is released. */
  async hold(key: JobKey): Promise<void> {
    await new Promise<void>((release) => this.held.add({ key, release }));
  }

  /** Releases what is held for a job, or everything, and returns how many requests that were. */
  release(target: JobKey = { projectId: ANY, jobId: ANY }): number {
    const chosen = [...this.held].filter(({ key }) => covers(target, key));
    for (const request of chosen) {
      this.held.delete(request);
      request.release();
    }
    return chosen.length;
  }

  /** The first effect of a kind that strikes this request, and the name of its fault; it counts as having acted. */
  applyFirstEffect<K extends Effect['kind']>(
    kind: K,
    key: JobKey,
    operation: Operation,
    accepts: (effect: EffectOf<K>) => boolean = () => true,
  ): { readonly name: string; readonly effect: EffectOf<K> } | undefined {
    const fits = (effect: Effect): effect is EffectOf<K> =>
      effect.kind === kind && accepts(effect as EffectOf<K>);
    for (const fault of this.matchingFaults(key, operation)) {
      const { name, effect } = fault;
      if (!fits(effect) || !this.isDue(fault)) continue;
      fault.actedCount += 1;
      return { name, effect };
    }
    return undefined;
  }

  /** The job after every alteration that strikes, one upon the other, and the names of those. */
  alter(job: AgentJob, life: JobLife, key: JobKey, operation: Operation, now: number) {
    const names: string[] = [];
    let altered = job;
    for (const fault of this.matchingFaults(key, operation)) {
      const { name, effect, actedCount } = fault;
      if (effect.kind !== 'alter') continue;
      const next = effect.alter(altered, { life, now, random: this.random, alteredCount: actedCount });
      if (next === altered || !this.isDue(fault)) continue;
      fault.actedCount += 1;
      altered = next;
      names.push(name);
    }
    return { job: altered, names };
  }

  private matchingFaults(key: JobKey, operation: Operation): ActiveFault[] {
    return this.faults.filter(
      (fault) =>
        fault.actedCount < (fault.times ?? Infinity) &&
        fault.operations.includes(operation) &&
        covers(fault, key),
    );
  }

  private isDue(fault: ActiveFault): boolean {
    if (fault.skippedCount < fault.skip) {
      fault.skippedCount += 1;
      return false;
    }
    return fault.chance === 1 || this.random() < fault.chance;
  }
}

/** The list of faults for people, made of their schemas. */
export function listFaults(): string {
  const faults = Object.entries(FAULTS).flatMap(([name, { help, operations, parameters }]) => [
    `  ${name.padEnd(24)}${help}${operations.length === 1 ? ` (${operations.join()} only)` : ''}`,
    ...describeFields(parameters).map((line) => ' '.repeat(26) + line),
  ]);
  return [
    'A fault is JSON, for example {"name":"slow","jobId":"job-1","times":1,"parameters":{"delay":"5s"}}. There are:',
    '',
    ...faults,
    '',
    'Every fault takes besides:',
    '',
    ...describeFields(settingSchema.omit({ name: true })).map((line) => `  ${line}`),
  ].join('\n');
}

function describeFields(schema: z.ZodObject): string[] {
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return Object.entries(properties).map(([name, field]) => {
    if (typeof field === 'boolean') return name;
    const fallback = field.default === undefined ? '' : ` (default ${JSON.stringify(field.default)})`;
    const choices = field.enum === undefined ? '' : `: ${field.enum.join(', ')}`;
    return `${name}: ${field.description ?? ''}${choices}${fallback}`;
  });
}
