import type { PromptFlags } from './prompt-source';
import { type Command, Option } from 'commander';
import { BATCH_POLLING_INITIAL } from '../../core/batch';
import {
  REQUEST_FIELDS,
  REQUEST_IDENTITY,
  REQUEST_OPTIONS,
  type RequestField,
  type RequestOption,
  requestWith,
} from '../../core/request-options';
import { FORMATS } from '../batch-input/line-blocks';

/** The values of flags, as commander names them: `pollingInitial`. Only what was given is there. */
export type RequestFlags = PromptFlags & Readonly<Record<string, unknown>> & { readonly requestId?: string };

/** The flags of a command that reads the items of a batch. */
export type LineFlags = RequestFlags & { readonly format?: string };

export const FIELDS = Object.keys(REQUEST_FIELDS) as RequestField[];

/** The words of a field's name, from which its flag and its column are made: `polling`, `timer`, `polls`. */
export function wordsOf(field: RequestField): string[] {
  const row = REQUEST_FIELDS[field];
  const name = 'shortName' in row ? row.shortName : field;
  return name.replace(/[A-Z]/g, (letter) => '.' + letter.toLowerCase()).split('.');
}

function flagOf(field: RequestField): string {
  return `--${wordsOf(field).join('-')}`;
}

/** The flag of each field of a request, for its problems. */
export const FLAG_OF_FIELD: Readonly<Record<string, string>> = {
  ...Object.fromEntries(FIELDS.map((field) => [field, flagOf(field)])),
  prompt: '--prompt or --prompt-file',
};

/** Adds the flags of one request. Their values are checked by the request's own checker, which finds all problems at once. */
export function addRequestFlags(command: Command): Command {
  const { projectId, jobId, prompt, requestId } = REQUEST_IDENTITY;
  command
    .option('--project <id>', `${projectId.help} (required)`)
    .option('--job <id>', `${jobId.help} (required)`)
    .option('--prompt <text>', `${prompt.help} (this or --prompt-file is required)`)
    .option('--prompt-file <file>', 'read the message from a file, - for stdin')
    .option('--request-id <id>', `${requestId.help} (default: a new one)`);
  return addOptionFlags(command, {});
}

/** Adds the flags of a command that reads the items of a batch: they are the defaults of its lines. */
export function addLineFlags(command: Command): Command {
  const { projectId, jobId, prompt } = REQUEST_IDENTITY;
  command
    .option('--format <format>', `${FORMATS.join(' or ')} (default: by the name or content of the file)`)
    .option('--project <id>', `${projectId.help}, for lines that name none`)
    .option('--job <id>', `${jobId.help}, for lines that name none`)
    .option('--prompt <text>', `${prompt.help}, for lines that have none`)
    .option('--prompt-file <file>', 'read the message for lines that have none from a file');
  return addOptionFlags(command, { 'polling.initial': BATCH_POLLING_INITIAL });
}

/** @param defaults of options whose default differs in this command */
function addOptionFlags(command: Command, defaults: Readonly<Record<string, string>>): Command {
  for (const [name, option] of Object.entries<RequestOption>(REQUEST_OPTIONS)) {
    const help = [option.help.replaceAll('`', ''), ...boundsOf(option)].join(', ');
    const flag = new Option(
      `${FLAG_OF_FIELD[name] ?? ''} <${PLACEHOLDERS[option.kind]}>`,
      `${help} (default: ${defaults[name] ?? option.default})`,
    );
    command.addOption(flag.helpGroup(OPTIONS_GROUP));
  }
  return command;
}

const OPTIONS_GROUP = 'Options of the follow-up (a duration is a number with a unit: 500ms, 30s, 10m, 24h):';

const PLACEHOLDERS: Readonly<Record<RequestOption['kind'], string>> = {
  choice: 'what',
  duration: 'duration',
  number: 'number',
  count: 'number',
};

function boundsOf(option: RequestOption): string[] {
  return option.kind === 'number' ? [`${option.minimum} to ${option.maximum}`] : [];
}

/** The request that the flags describe, unchecked. Fields that were not given stay out of it. */
export function requestOfFlags(
  flags: RequestFlags,
  prompt: string | undefined,
  requestId: string | undefined,
): Readonly<Record<string, unknown>> {
  const given = { ...flags, prompt, requestId } as Readonly<Record<string, string | undefined>>;
  return requestWith(FIELDS.map((field) => [field, valueOf(field, given[attributeOf(field)])]));
}

/** The name under which commander passes the value of a field's flag. */
function attributeOf(field: RequestField): string {
  return new Option(flagOf(field)).attributeName();
}

/** The text of a flag or a cell as a value of the request. */
export function valueOf(field: RequestField, text: string | undefined): number | string | undefined {
  const { kind } = REQUEST_FIELDS[field];
  return text !== undefined && (kind === 'number' || kind === 'count') ? numberOr(text) : text;
}

/** The number in a text; any other text as it is, so that the checker can quote it. */
export function numberOr(text: string): number | string {
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) ? Number(text) : text;
}
