export type JsonObject = Readonly<Record<string, unknown>>;

/** Binary data is not a record, because each byte would be a field. A Temporal payload may have 2 MiB. */
export function isRecord(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

export function typeName(value: unknown): string {
  if (value === undefined) return 'absent';
  if (value === null) return 'null';
  if (ArrayBuffer.isView(value)) return 'binary data';
  return Array.isArray(value) ? 'an array' : `of type ${typeof value}`;
}

/** An error in one field of an input. */
export interface Problem {
  /** The path of the field, such as `polling.initial`. The CLI shows the name of the flag or the column instead. */
  readonly field: string;
  /** Why the value is rejected, and which values are accepted. */
  readonly text: string;
  /** The number of the batch item, from 1. The field is absent if the problem concerns the whole input. */
  readonly item?: number;
  /** The number of the earlier item that has the same message, if the problem is that the message occurs twice. */
  readonly earlierItem?: number;
}

/** @param nameOf the flag or the column of each field. A field without a name keeps its path. */
export function problemText(
  { item, earlierItem, field, text }: Problem,
  nameOf: Readonly<Record<string, string>> = {},
): string {
  const place = item === undefined ? '' : `${itemPlace('item', item, earlierItem)}: `;
  return `${place}${nameOf[field] ?? field}: ${text}`;
}

/** Returns where a problem is, such as `item 7` or `line 7 repeats line 3`. @param unit `item` or `line` */
export function itemPlace(unit: string, item: number, earlierItem: number | undefined): string {
  return `${unit} ${item}${earlierItem === undefined ? '' : ` repeats ${unit} ${earlierItem}`}`;
}

/** The maximum number of problems in one message, because a batch may have 100,000 problems. */
const MAX_PROBLEMS = 20;

export function problemTexts(problems: readonly Problem[]): string {
  const texts = problems.slice(0, MAX_PROBLEMS).map((problem) => problemText(problem));
  const more = problems.length - texts.length;
  return [...texts, ...(more > 0 ? [`… and ${more} more`] : [])].join('; ');
}

/*
 * The checks below validate values that workflows receive. An operator may complete an activity with any value (`temporal activity
 * complete`). If a workflow accepted a malformed value, its workflow tasks would fail indefinitely. A lone surrogate would end the
 * worker process (sdk-core 1.24).
 *
 * A validation library is not used here. With `zod`, the workflow bundle was twice as large. Loading the bundle and running the
 * first workflow task took 1.7 times as much CPU (docs/architecture.md).
 */

export type Check<T> = (value: unknown) => value is T;
/** The type of the values that a check accepts. */
export type Checked<C> = C extends Check<infer T> ? T : never;

type Checks = Readonly<Record<string, Check<unknown>>>;
type Flat<T> = { [K in keyof T]: T[K] };
/** A field whose check accepts undefined may be absent. The `as` clauses preserve the comments of the fields. */
type Fields<F extends Checks> = Flat<
  { readonly [K in keyof F as undefined extends Checked<F[K]> ? never : K]: Checked<F[K]> } & {
    readonly [K in keyof F as undefined extends Checked<F[K]> ? K : never]?: Checked<F[K]>;
  }
>;

/** The maximum length of a text. Every text that an activity returns is shorter. */
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

export function literalOf<const T>(...values: readonly T[]): Check<T> {
  return (value): value is T => values.some((each) => each === value);
}

export function objectOf<F extends Checks>(checks: F): Check<Fields<F>> {
  return (value): value is Fields<F> =>
    isRecord(value) && Object.entries(checks).every(([name, check]) => check(value[name]));
}

export function unionOf<T extends readonly unknown[]>(
  ...checks: { readonly [K in keyof T]: Check<T[K]> }
): Check<T[number]> {
  return (value): value is T[number] => checks.some((check) => check(value));
}
