import { isRecord, type JsonObject, typeName } from '../../contract/field-reader';
import { nearest } from '../../contract/nearest';

/** The fields of a request, those of `polling` with its name before, and what a column of each is called. */
export const COLUMN_OF_FIELD = {
  projectId: 'project',
  jobId: 'job',
  prompt: 'prompt',
  requestId: 'request_id',
  whenActive: 'when_active',
  onUnknownDelivery: 'on_unknown_delivery',
  deadline: 'deadline',
  reconcile: 'reconcile',
  settle: 'settle',
  confirm: 'confirm',
  'polling.initial': 'polling_initial',
  'polling.growth': 'polling_growth',
  'polling.maximum': 'polling_maximum',
  'polling.jitter': 'polling_jitter',
  'polling.timerPolls': 'polling_timer_polls',
} as const;

export type Field = keyof typeof COLUMN_OF_FIELD;

const FIELDS = Object.keys(COLUMN_OF_FIELD) as Field[];
export const COLUMNS = Object.values(COLUMN_OF_FIELD);
const POLLING_FIELDS = FIELDS.filter((field) => field.startsWith('polling.'));

/** Every way to write a field: as a column, and as the request's own JSON has it. */
const FIELD_OF_NAME = new Map<string, Field>([
  ...FIELDS.map((field): [string, Field] => [COLUMN_OF_FIELD[field], field]),
  ...FIELDS.filter((field) => !POLLING_FIELDS.includes(field)).map((field): [string, Field] => [
    field,
    field,
  ]),
]);

/** What a line says, by field: the value, and the name that the line uses for it. */
export type LineFields = ReadonlyMap<Field, { readonly name: string; readonly value: unknown }>;

export function fieldOf(name: string): Field | undefined {
  return FIELD_OF_NAME.get(name);
}

/** A name that is no field, with the one that was probably meant. */
export function unknownName(name: string, kind: 'column' | 'field'): string {
  const shown = JSON.stringify(name.slice(0, 60));
  const meant = nearest(name, [...FIELD_OF_NAME.keys()]);
  return meant === undefined
    ? `${shown} is no ${kind} here; the ${kind}s are ${COLUMNS.join(', ')}`
    : `${shown} is no ${kind} here; did you mean ${meant}?`;
}

/**
 * Sorts what a line says by field. What is null stands for what is not given.
 *
 * @param report takes each problem: a name that is none, or two names for the same
 */
export function fieldsOfLine(line: JsonObject, report: (problem: string) => void): LineFields {
  const fields = new Map<Field, { name: string; value: unknown }>();
  const take = (field: Field | undefined, name: string, value: unknown): void => {
    if (field === undefined) {
      report(unknownName(name, 'field'));
      return;
    }
    if (value === null || value === undefined) return;
    const other = fields.get(field);
    if (other !== undefined) {
      report(`${other.name} and ${name} are the same field; give one of the two`);
      return;
    }
    fields.set(field, { name, value });
  };
  for (const [name, value] of Object.entries(line)) {
    if (name !== 'polling') take(fieldOf(name), name, value);
    else if (isRecord(value)) {
      for (const [inner, innerValue] of Object.entries(value)) {
        const path = `polling.${inner}`;
        const field = POLLING_FIELDS.find((known) => known === path);
        if (field === undefined) report(unknownPollingName(inner));
        else take(field, path, innerValue);
      }
    } else if (value !== null) {
      report(`polling: must be an object, not ${typeName(value)}`);
    }
  }
  return fields;
}

function unknownPollingName(name: string): string {
  const known = POLLING_FIELDS.map((field) => field.slice('polling.'.length));
  const meant = nearest(name, known);
  const shown = JSON.stringify(`polling.${name.slice(0, 60)}`);
  return `${shown} is no field here; ${meant === undefined ? `polling has ${known.join(', ')}` : `did you mean polling.${meant}?`}`;
}
