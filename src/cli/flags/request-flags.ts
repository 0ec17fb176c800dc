import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { MAX_TIMEOUT_MS } from '../../client/call-runner';
import { invalidFieldError } from '../../client/errors';
import { BATCH_POLLING_INITIAL } from '../../batch/items';
import type { JsonObject } from '../../contract/checks';
import {
  REQUEST_FIELDS,
  REQUEST_IDENTITY,
  REQUEST_OPTIONS,
  type RequestField,
  type RequestOption,
  buildRequest,
} from '../../contract/request';
import { MAX_PROMPT_BYTES } from '../../contract/text';
import { parseDuration } from '../../contract/duration';
import { explainEncoding } from './csv-form';

/** The options with the names that commander gives them, such as `pollingInitial`. */
export interface RequestFlags extends JsonObject {
  readonly prompt?: string;
  readonly promptFile?: string;
  readonly requestId?: string;
}

export const FIELDS = Object.keys(REQUEST_FIELDS) as RequestField[];

/** Returns the words of a field's flag and column. For `polling.timerPolls`, these are `polling`, `timer` and `polls`. */
export function splitFieldName(field: string): string[] {
  const row = REQUEST_FIELDS[field as RequestField] as { readonly shortName?: string } | undefined;
  const name = row?.shortName ?? field;
  return name.replace(/[A-Z]/g, (letter) => '.' + letter.toLowerCase()).split('.');
}

/** Returns the flag of each field, for example `--max-staleness` of `maxStaleness`. */
export function flagsFromFields(...fields: readonly string[]): Record<string, string> {
  return Object.fromEntries(fields.map((field) => [field, `--${splitFieldName(field).join('-')}`]));
}

export const FLAG_BY_FIELD: Readonly<Record<string, string>> = {
  ...flagsFromFields(...FIELDS),
  prompt: '--prompt or --prompt-file',
};

/** Adds the flags of a request. The request's checker checks their values, because it reports all problems at once. */
export function addRequestFlags(command: Command): Command {
  command.option('--request-id <id>', `${REQUEST_IDENTITY.requestId.help} (default: a generated ID)`);
  return addFieldFlags(command, ' (required)', {});
}

/** Adds the flags that set defaults for the lines of a batch. A request ID is not one of them, because it identifies one follow-up. */
export function addLineFlags(command: Command): Command {
  return addFieldFlags(command, ' (for lines that do not set it)', {
    'polling.initial': BATCH_POLLING_INITIAL,
  });
}

function addFieldFlags(command: Command, when: string, defaults: Readonly<Record<string, string>>): Command {
  const { projectId, jobId, prompt } = REQUEST_IDENTITY;
  command
    .option('--project <id>', projectId.help + when)
    .option('--job <id>', jobId.help + when)
    .option('--prompt <text>', prompt.help + when)
    .option('--prompt-file <file>', 'read the message from this file instead of --prompt; - reads stdin');
  for (const [name, option] of Object.entries<RequestOption>(REQUEST_OPTIONS)) {
    const bounds = option.kind === 'number' ? `, ${option.minimum} to ${option.maximum}` : '';
    const defaultText = `(default: ${defaults[name] ?? option.default})`;
    const help = `${option.help.replaceAll('`', '')}${bounds} ${defaultText}`;
    const flag = new Option(`${FLAG_BY_FIELD[name] ?? ''} <${option.kind}>`, help);
    command.addOption(flag.helpGroup(OPTIONS_GROUP));
  }
  return command;
}

const OPTIONS_GROUP = 'Options of the follow-up (a duration is a number with a unit: 500ms, 30s, 10m, 24h):';

/** Returns the request that the flags describe, without checking it. */
export function requestFromFlags(flags: JsonObject): JsonObject {
  const toFlagName = (field: RequestField) =>
    new Option(`--${splitFieldName(field).join('-')}`).attributeName();
  return buildRequest(FIELDS.map((field) => [field, parseFieldValue(field, flags[toFlagName(field)])]));
}

export function parseFieldValue(field: RequestField, text: unknown): unknown {
  const { kind } = REQUEST_FIELDS[field];
  return typeof text === 'string' && (kind === 'number' || kind === 'count') ? toNumberOrText(text) : text;
}

/** Returns a number, or the unchanged text if it is not a number, so that the checker can quote it. */
export function toNumberOrText(text: string): number | string {
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) ? Number(text) : text;
}

export function wholeNumberParser(minimum: number, maximum: number) {
  return (text: string): number => {
    const number = /^\d+$/.test(text) ? Number(text) : NaN;
    if (number >= minimum && number <= maximum) return number;
    throw new InvalidArgumentError(`The value must be a whole number from ${minimum} to ${maximum}.`);
  };
}

export function parseDurationFlag(text: string): number {
  const parsed = parseDuration(text);
  if ('ms' in parsed) return parsed.ms;
  throw new InvalidArgumentError(`${parsed.problem}.`);
}

export function parseTimeoutFlag(text: string): number {
  const timeoutMs = parseDurationFlag(text);
  if (timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS) return timeoutMs;
  throw new InvalidArgumentError('The value must be greater than 0 and at most 24d.');
}

/** Returns the unchanged message, or undefined if no option sets a message. @throws InvalidRequestError */
export async function readPrompt(
  { prompt, promptFile }: RequestFlags,
  stdin: AsyncIterable<Uint8Array>,
): Promise<string | undefined> {
  if (promptFile === undefined) return prompt;
  if (prompt !== undefined) throw invalidFieldError('--prompt, --prompt-file', 'set only one of the two');
  const text = await readText(promptFile, stdin, '--prompt-file', MAX_PROMPT_BYTES);
  if (text === '')
    throw invalidFieldError('--prompt-file', 'the message is empty; it must have at least 1 character');
  return text;
}

/** Reads a file, or stdin if `file` is `-`. The text keeps its byte order mark. @throws InvalidRequestError */
export async function readText(
  file: string,
  stdin: AsyncIterable<Uint8Array>,
  field: string,
  maxBytes: number,
): Promise<string> {
  const name = file === '-' ? 'stdin' : JSON.stringify(file);
  const source = file === '-' ? stdin : (createReadStream(file) as AsyncIterable<Uint8Array>);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of source) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxBytes) break;
    }
  } catch (error) {
    throw invalidFieldError(field, `${name} can't be read (${(error as Error).message})`);
  }
  if (size > maxBytes)
    throw invalidFieldError(field, `${name} has more than ${maxBytes} bytes, which is the maximum`);
  const bytes = Buffer.concat(chunks);
  if (isUtf8(bytes)) return bytes.toString();
  throw invalidFieldError(field, `${name} ${explainEncoding(bytes)}`);
}
