export type JsonObject = Readonly<Record<string, unknown>>;

/** Bytes have a field each: a payload of Temporal may be 2 MB of them. */
export function isRecord(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

export function typeName(value: unknown): string {
  if (value === undefined) return 'absent';
  if (value === null) return 'null';
  if (ArrayBuffer.isView(value)) return 'binary data';
  return Array.isArray(value) ? 'an array' : `of type ${typeof value}`;
}

/** One thing that is wrong with an input. */
export interface Problem {
  /** The path of the field, such as `polling.initial`; who shows it may name a flag or a column instead. */
  readonly field: string;
  /** What is wrong with it, and what is right. */
  readonly text: string;
  /** The item of a batch that it is about, from 1. @default none, it is about the whole */
  readonly item?: number;
}

/** @param nameOf the reader's names for fields; a field without one keeps its path */
export function problemText(
  { item, field, text }: Problem,
  nameOf: Readonly<Record<string, string>> = {},
): string {
  return `${item === undefined ? '' : `item ${item}: `}${nameOf[field] ?? field}: ${text}`;
}

/** Problems that a message names: a batch may have 100,000. */
const MAX_PROBLEMS = 20;

export function problemTexts(problems: readonly Problem[]): string {
  const texts = problems.slice(0, MAX_PROBLEMS).map((problem) => problemText(problem));
  const more = problems.length - texts.length;
  return [...texts, ...(more > 0 ? [`… and ${more} more`] : [])].join('; ');
}

/*
 * Checks of what comes over the wire. An operator may complete an activity with any value (`temporal activity complete`): a
 * workflow that took it would fail its tasks for ever, and half a surrogate pair would end the worker (sdk-core 1.24).
 */

export type Check<T> = (value: unknown) => value is T;
/** The type that a check tells. */
export type Checked<C> = C extends Check<infer T> ? T : never;

type Checks = Readonly<Record<string, Check<unknown>>>;
type Flat<T> = { [K in keyof T]: T[K] };
/** A field whose check takes undefined may be left out. With `as`, the comments of the fields stay with them. */
type Fields<F extends Checks> = Flat<
  { readonly [K in keyof F as undefined extends Checked<F[K]> ? never : K]: Checked<F[K]> } & {
    readonly [K in keyof F as undefined extends Checked<F[K]> ? K : never]?: Checked<F[K]>;
  }
>;

/** Above the bounds of every text that our activities return. */
const MAX_TEXT_CHARACTERS = 4_096;

export const text: Check<string> = (value): value is string =>
  typeof value === 'string' && value.length <= MAX_TEXT_CHARACTERS && value.isWellFormed();
export const number: Check<number> = (value): value is number => Number.isFinite(value);
export const count: Check<number> = (value): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;
export const boolean: Check<boolean> = (value) => typeof value === 'boolean';
/** Milliseconds since the epoch. */
export const time: Check<number> = (value): value is number =>
  typeof value === 'number' && !Number.isNaN(new Date(value).getTime());

export function orNull<T>(check: Check<T>): Check<T | null> {
  return (value): value is T | null => value === null || check(value);
}

export function optional<T>(check: Check<T>): Check<T | undefined> {
  return (value): value is T | undefined => value === undefined || check(value);
}

export function listOf<T>(check: Check<T>): Check<readonly T[]> {
  return (value): value is readonly T[] => Array.isArray(value) && value.every(check);
}

export function mapOf<T>(check: Check<T>): Check<Readonly<Record<string, T>>> {
  return (value): value is Readonly<Record<string, T>> =>
    isRecord(value) && Object.entries(value).every(([name, each]) => text(name) && check(each));
}

export function oneOf<const T>(...values: readonly T[]): Check<T> {
  return (value): value is T => values.some((each) => each === value);
}

export function fields<F extends Checks>(checks: F): Check<Fields<F>> {
  return (value): value is Fields<F> =>
    isRecord(value) && Object.entries(checks).every(([name, check]) => check(value[name]));
}

export function anyOf<T extends readonly unknown[]>(
  ...checks: { readonly [K in keyof T]: Check<T[K]> }
): Check<T[number]> {
  return (value): value is T[number] => checks.some((check) => check(value));
}
