/** Creates the JSON Schema and the table of docs/request.md from the table of request fields. */
import { MAX_ID_CHARACTERS, MAX_PROMPT_BYTES, MAX_WORKFLOW_ID_BYTES } from '../../src/contract/text';
import { REQUEST_FIELDS, REQUEST_OPTIONS } from '../../src/contract/request';

type Field = (typeof REQUEST_FIELDS)[keyof typeof REQUEST_FIELDS];
type Schema = Readonly<Record<string, unknown>>;

const NAME = '[^\\u0000-\\u001f\\u007f-\\u009f\\ufffd]+';
const NAME_RULE = 'No control characters and no U+FFFD';

/** Returns the JSON Schema of `FollowUpRequest`, for callers in other languages. */
export function requestSchema(): Schema {
  const properties: Record<string, Schema> = {};
  const polling: Record<string, Schema> = {};
  for (const [name, field] of Object.entries<Field>(REQUEST_FIELDS)) {
    const [group = '', inner] = name.split('.');
    const schema = { description: sentence(field.help), ...fieldSchema(field) };
    if (inner === undefined) properties[name] = schema;
    else polling[inner] = schema;
    if (group === 'polling') properties.polling = pollingSchema(polling);
  }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'FollowUpRequest',
    description:
      'The input of the workflow followUp: one message to one agent job. An optional field may be null, which means absent. ' +
      `This schema cannot express the following rules. A prompt has at most ${MAX_PROMPT_BYTES} bytes of UTF-8. The deadline is ` +
      'longer than maxStaleness. polling.maximum is not below polling.initial, and both are at least ' +
      `${REQUEST_OPTIONS['polling.initial'].minimumMs}ms. No duration is longer than 3650d. No text has a lone surrogate. The ` +
      `workflow ID that is derived from project, job and request ID has at most ${MAX_WORKFLOW_ID_BYTES} bytes. If requestId is ` +
      'set, the workflow ID must be the derived one (workflow-id-vectors.json). Otherwise, the workflow ID is the request ID.',
    type: 'object',
    required: Object.entries<Field>(REQUEST_FIELDS).flatMap(([name, field]) =>
      isRequired(field) ? [name] : [],
    ),
    additionalProperties: false,
    properties,
    $defs: {
      id: {
        description: `${NAME_RULE}. If the ID is split at every "/" and "\\", no part is "." or "..".`,
        type: 'string',
        minLength: 1,
        maxLength: MAX_ID_CHARACTERS,
        pattern: `^(?!(?:[^\\ufffd]*[/\\\\])?\\.{1,2}(?:[/\\\\]|$))${NAME}$`,
      },
      name: {
        description: `${NAME_RULE}.`,
        type: ['string', 'null'],
        minLength: 1,
        maxLength: MAX_ID_CHARACTERS,
        pattern: `^${NAME}$`,
      },
      duration: {
        description: 'A number with a unit: 500ms, 30s, 10m, 24h, 7d. A bare number is rejected.',
        type: ['string', 'null'],
        pattern: '^[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)$',
      },
    },
  };
}

function pollingSchema(properties: Readonly<Record<string, Schema>>): Schema {
  return {
    description:
      "The next interval is growth × the turn's age, at least initial and at most maximum, ± jitter.",
    type: ['object', 'null'],
    additionalProperties: false,
    properties,
  };
}

function fieldSchema(field: Field): Schema {
  switch (field.kind) {
    case 'id':
      return { $ref: '#/$defs/id' };
    case 'name':
      return { $ref: '#/$defs/name' };
    case 'prompt':
      return { type: 'string', minLength: 1, maxLength: MAX_PROMPT_BYTES, pattern: '^[^\\ufffd]+$' };
    case 'choice':
      return { enum: [...field.choices, null], default: field.default };
    case 'duration':
      return { $ref: '#/$defs/duration', default: field.default };
    case 'number':
      return {
        type: ['number', 'null'],
        minimum: field.minimum,
        maximum: field.maximum,
        default: field.default,
      };
    case 'count':
      return {
        anyOf: [{ type: ['integer', 'null'], minimum: 0, maximum: field.maximum }, { const: 'all' }],
        default: field.default,
      };
  }
}

function isRequired(field: Field): boolean {
  return field.kind === 'prompt' || field.kind === 'id';
}

function sentence(help: string): string {
  return `${capitalized(help.replaceAll('`', ''))}.`;
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns the rows of the table of fields, with the heading. */
export function requestRows(): string[][] {
  const rows = Object.entries<Field>(REQUEST_FIELDS).map(([name, field]) => [
    `\`${name}\``,
    defaultText(field),
    [capitalized(field.help), ...boundsOf(field)].map((text) => `${text}.`).join(' '),
  ]);
  return [['field', 'default', 'meaning'], ...rows];
}

function defaultText(field: Field): string {
  if ('default' in field) return `\`${field.default}\``;
  return isRequired(field) ? 'required' : 'the workflow ID; `FollowUpClient` requires a request ID';
}

const NAME_BOUNDS = `The value has 1 to ${MAX_ID_CHARACTERS} characters, no control characters and no U+FFFD`;

function boundsOf(field: Field): string[] {
  switch (field.kind) {
    case 'id':
      return [NAME_BOUNDS, 'If the value is split at every `/` and `\\`, no part is `.` or `..`'];
    case 'name':
      return [NAME_BOUNDS];
    case 'prompt':
      return [`The message has 1 character to ${MAX_PROMPT_BYTES / 1_024} KiB of UTF-8, and no U+FFFD`];
    case 'number':
      return [`The value is from ${field.minimum} to ${field.maximum}`];
    default:
      return [];
  }
}
