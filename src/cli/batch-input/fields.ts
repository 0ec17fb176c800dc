import { isRecord, type JsonObject, typeName } from '../../contract/field-reader';
import { nearest } from '../../contract/nearest';
import type { RequestField } from '../../contract/request-options';
import { quote } from '../../contract/text';
import { FIELDS, wordsOf } from '../request-flags';

/** The fields of a request, and what a column of each is called. */
export const COLUMN_OF_FIELD = Object.fromEntries(
  FIELDS.map((field) => [field, wordsOf(field).join('_')]),
) as Readonly<Record<RequestField, string>>;

export const COLUMNS = Object.values(COLUMN_OF_FIELD);

/** Every way to write a field: as a column, and as the request's own JSON has it. */
const FIELD_OF_NAME = new Map<string, RequestField>([
  ...FIELDS.map((field): [string, RequestField] => [COLUMN_OF_FIELD[field], field]),
  ...FIELDS.map((field): [string, RequestField] => [field, field]),
]);

/** What a line says, by field: the value, and the name that the line uses for it. */
export type LineFields = ReadonlyMap<RequestField, { readonly name: string; readonly value: unknown }>;

export function fieldOfName(name: string): RequestField | undefined {
  return FIELD_OF_NAME.get(name);
}

/** The problem of a name that is not a field, with the one that was probably meant. */
export function unknownName(name: string, kind: 'column' | 'field'): string {
  const meant = nearest(name, [...FIELD_OF_NAME.keys()]);
  const hint = meant === undefined ? `the ${kind}s are ${COLUMNS.join(', ')}` : `did you mean ${meant}?`;
  return `${quote(name)} is not a ${kind} here; ${hint}`;
}

/**
 * Sorts what a line says by field. What is null stands for what is not given.
 *
 * @param report takes each problem: a name that is not a field, or two names for the same
 */
export function fieldsOfLine(line: JsonObject, report: (problem: string) => void): LineFields {
  const fields = new Map<RequestField, { name: string; value: unknown }>();
  const take = (name: string, value: unknown): void => {
    const field = fieldOfName(name);
    const other = field && fields.get(field);
    if (field === undefined) report(unknownName(name, 'field'));
    else if (value === null || value === undefined) return;
    else if (other !== undefined) report(`${other.name} and ${name} are the same field; give one of the two`);
    else fields.set(field, { name, value });
  };
  for (const [name, value] of Object.entries(line)) {
    if (name !== 'polling') take(name, value);
    else if (isRecord(value))
      for (const [inner, item] of Object.entries(value)) take(`polling.${inner}`, item);
    else if (value !== null) report(`polling: must be an object, not ${typeName(value)}`);
  }
  return fields;
}
