import { z } from 'zod';
import type { AgentJob } from '../src/contract/job';
import { type Effect, FAULTS, OPERATIONS, type Operation } from './faults';
import { parseWithSchema, InputError, parseJson } from './input';
import type { JobLife } from './job-life';
import { ANY, covers, type JobKey } from './jobs';
import type { Random } from './random';

const settingSchema = z.strictObject({
  name: z.string().refine((name) => Object.hasOwn(FAULTS, name), {
    error: ({ input }) => `${JSON.stringify(input)} is not a fault; --list-faults lists all faults`,
  }),
  projectId: z.string().min(1).default(ANY).describe('acts only on jobs of this project'),
  jobId: z.string().min(1).default(ANY).describe('acts only on jobs with this ID'),
  times: z.int().min(1).optional().describe('ends after acting on this number of requests'),
  skip: z.int().min(0).default(0).describe('ignores this number of requests, and then acts'),
  chance: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('acts with this probability, from 0 to 1; the seed determines the requests'),
  operation: z.enum(OPERATIONS).optional().describe('acts only on reads (get) or on sends (message)'),
  parameters: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('the parameters of the fault, as listed above'),
});

/** The setting that switches a fault on: in tests, and as JSON on the command line and over HTTP. */
export type FaultSetting = z.input<typeof settingSchema>;

interface ActiveFault extends z.output<typeof settingSchema> {
  readonly effect: Effect;
  readonly operations: readonly Operation[];
  actedCount: number;
  skippedCount: number;
}

type EffectOf<K extends Effect['kind']> = Extract<Effect, { kind: K }>;

/** Checks a setting and creates its fault. @throws InputError for an unknown fault or an invalid parameter */
function activate(setting: unknown): ActiveFault {
  const checkedSetting = parseWithSchema(settingSchema, setting);
  const { name, operation, parameters } = checkedSetting;
  const fault = FAULTS[name];
  if (fault === undefined) throw new InputError(`${name} is not a fault`);
  if (operation !== undefined && !fault.operations.includes(operation)) {
    throw new InputError(`operation: the fault ${name} acts only on ${fault.operations.join(' and ')}`);
  }
  const operations = operation === undefined ? fault.operations : [operation];
  const effect = fault.effect(parameters);
  return { ...checkedSetting, effect, operations, actedCount: 0, skippedCount: 0 };
}

/** Parses and checks a setting. @throws InputError for a text that is not JSON, an unknown fault or an invalid parameter */
export function parseFault(json: string): FaultSetting {
  const setting = parseJson(json);
  activate(setting);
  return setting as FaultSetting;
}

/** The active faults, and the requests that they hold. Faults act on a request in the order in which they were set. */
export class ActiveFaults {
  private faults: ActiveFault[] = [];
  private readonly held = new Set<{ readonly key: JobKey; readonly release: () => void }>();

  constructor(readonly random: Random) {}

  /** Switches a fault on. @throws InputError */
  set(setting: unknown): void {
    this.faults.push(activate(setting));
  }

  /** Switches off the faults that were set for exactly this target, or all faults. Held requests stay held. */
  clear(target?: JobKey): void {
    this.faults = this.faults.filter(
      ({ projectId, jobId }) =>
        target !== undefined && !(projectId === target.projectId && jobId === target.jobId),
    );
  }

  /** Holds a request, and resolves when the request is released. */
  async hold(key: JobKey): Promise<void> {
    await new Promise<void>((release) => this.held.add({ key, release }));
  }

  /** Releases the held requests of the target, or all held requests. @returns the number of released requests */
  release(target: JobKey = { projectId: ANY, jobId: ANY }): number {
    const chosen = [...this.held].filter(({ key }) => covers(target, key));
    for (const request of chosen) {
      this.held.delete(request);
      request.release();
    }
    return chosen.length;
  }

  /** Returns the first effect of this kind that acts on the request, with the name of its fault. The request is counted for the fault. */
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

  /** Returns the job after all faults that change it have acted in order, and the names of these faults. */
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

/** Returns the list of faults that `--list-faults` prints. The schemas of the faults are its source. */
export function listFaults(): string {
  const faults = Object.entries(FAULTS).flatMap(([name, { help, operations, parameters }]) => [
    `  ${name.padEnd(24)}${help}${operations.length === 1 ? ` (${operations.join()} only)` : ''}`,
    ...describeFields(parameters).map((line) => ' '.repeat(26) + line),
  ]);
  return [
    'A fault is JSON, for example {"name":"slow","jobId":"job-1","times":1,"parameters":{"delay":"5s"}}. The faults are:',
    '',
    ...faults,
    '',
    'Every fault also has these fields:',
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
