import { nearest, quote } from '../src/core/text';
import { ParameterValues, readParameter } from './fault-parameters';
import type { FaultRow, Operation } from './fault-row';
import { CONDITIONS, FAULT_NAMES, type FaultName, faultRow } from './faults';
import { ANY } from './jobs';
import { percentDecode } from './route';

/** How a fault is switched on. */
export interface FaultSetting {
  readonly name: string;
  /** @default every project */
  readonly projectId?: string;
  /** @default every job of the project */
  readonly jobId?: string;
  /** Ends after acting on so many requests. @default until it is cleared */
  readonly times?: number;
  /** Lets the first so many requests pass on which it would have acted. @default 0 */
  readonly skip?: number;
  /** Acts with this probability, drawn from the sandbox's seed: 0 to 1. @default 1 */
  readonly chance?: number;
  /** @default all operations on which the fault can act */
  readonly operation?: Operation;
  /** The fault's own parameters; durations as texts such as `500ms`. */
  readonly parameters?: Readonly<Record<string, string | number>>;
}

/** A checked setting with every default filled in. */
export interface FaultOrder {
  readonly name: FaultName;
  readonly row: FaultRow;
  readonly projectId: string;
  readonly jobId: string;
  /** `Infinity`: until it is cleared. */
  readonly times: number;
  readonly skip: number;
  readonly chance: number;
  readonly operations: readonly Operation[];
  readonly values: ParameterValues;
}

/** Thrown for a fault that can't be switched on; the message says what is wrong with which part, and what is right. */
export class FaultSettingError extends Error {
  override readonly name = 'FaultSettingError';
}

/** @throws FaultSettingError */
export function checkFault(setting: FaultSetting): FaultOrder {
  const name = FAULT_NAMES.find((known) => known === setting.name);
  if (name === undefined) {
    throw new FaultSettingError(
      `there is no fault ${quote(setting.name)}${suggestion(setting.name, FAULT_NAMES)}; --list-faults shows them all`,
    );
  }
  const row = faultRow(name);
  const { times = Infinity, skip = 0, chance = 1, operation } = setting;
  check(name, 'times', times === Infinity || isCount(times, 1), 'must be a whole number from 1');
  check(name, 'skip', isCount(skip, 0), 'must be a whole number from 0');
  check(name, 'chance', chance >= 0 && chance <= 1, 'must be a number from 0 to 1');
  if (operation !== undefined) {
    check(name, 'operation', row.operations.includes(operation), `must be ${row.operations.join(' or ')}`);
  }
  return {
    name,
    row,
    projectId: setting.projectId ?? ANY,
    jobId: setting.jobId ?? ANY,
    times,
    skip,
    chance,
    operations: operation === undefined ? row.operations : [operation],
    values: readParameters(name, row, setting.parameters ?? {}),
  };
}

/**
 * Reads `NAME[=VALUE][:key=value…][@project/job]`; project and job may be percent-encoded, `*` stands for all.
 *
 * @throws FaultSettingError
 */
export function parseFault(text: string): FaultSetting {
  const at = text.lastIndexOf('@');
  const [head = '', ...pairs] = (at === -1 ? text : text.slice(0, at)).split(':');
  const [name, shorthand] = cut(head, '=');
  const target = at === -1 ? {} : parseTarget(text.slice(at + 1));
  const parameters: Record<string, string> = {};
  const conditions: { times?: number; skip?: number; chance?: number; operation?: Operation } = {};
  if (shorthand !== undefined) parameters[firstParameter(name)] = shorthand;
  for (const pair of pairs) {
    const [key, value] = cut(pair, '=');
    if (value === undefined) throw new FaultSettingError(`fault ${name}: ${quote(pair)} must be key=value`);
    if (key === 'times' || key === 'skip' || key === 'chance') conditions[key] = numberOf(value);
    // Whether the fault knows the operation is checked with everything else.
    else if (key === 'operation') conditions.operation = value as Operation;
    else parameters[key] = value;
  }
  const setting: FaultSetting = { name, ...target, ...conditions, parameters };
  checkFault(setting);
  return setting;
}

/** The parameter that `NAME=VALUE` sets. */
function firstParameter(name: string): string {
  const known = FAULT_NAMES.find((candidate) => candidate === name);
  if (known === undefined) return '';
  const first = Object.keys(faultRow(known).parameters)[0];
  if (first !== undefined) return first;
  throw new FaultSettingError(`fault ${name} takes no value: it has no parameter of its own`);
}

function parseTarget(text: string): { projectId: string; jobId: string } {
  const [project, job] = cut(text, '/');
  const projectId = percentDecode(project);
  const jobId = job === undefined ? undefined : percentDecode(job);
  if (!projectId || !jobId || job?.includes('/') === true) {
    throw new FaultSettingError(
      `${quote('@' + text)} must be @project/job, each percent-encoded where it holds a slash; * stands for all`,
    );
  }
  return { projectId, jobId };
}

function readParameters(
  name: FaultName,
  row: FaultRow,
  given: Readonly<Record<string, string | number>>,
): ParameterValues {
  const own = Object.keys(row.parameters);
  for (const key of Object.keys(given)) {
    if (own.includes(key)) continue;
    const known = [...own, ...Object.keys(CONDITIONS)];
    throw new FaultSettingError(
      `fault ${name} has no ${quote(key)}${suggestion(key, known)}; it takes ${known.join(', ')}`,
    );
  }
  const values = new Map<string, string | number>();
  for (const [key, parameter] of Object.entries(row.parameters)) {
    const text = given[key] ?? parameter.fallback;
    if (text === null) continue;
    const read = readParameter(parameter, text);
    if ('problem' in read) throw new FaultSettingError(`fault ${name}: ${key} ${read.problem}`);
    values.set(key, read.value);
  }
  return new ParameterValues(values);
}

function check(name: FaultName, key: keyof typeof CONDITIONS, good: boolean, rule: string): void {
  if (!good) throw new FaultSettingError(`fault ${name}: ${key} ${rule}`);
}

function isCount(value: number, minimum: number): boolean {
  return Number.isSafeInteger(value) && value >= minimum;
}

/** `Number('')` is 0, which nobody has written. */
function numberOf(text: string): number {
  return text.trim() === '' ? NaN : Number(text);
}

function cut(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function suggestion(word: string, known: readonly string[]): string {
  const best = nearest(word, known);
  return best === undefined ? '' : `; did you mean ${best}?`;
}
