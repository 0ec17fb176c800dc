import type { Command } from 'commander';
import {
  type CheckedBatch,
  exampleBatchId,
  InvalidScheduleError,
  NO_NAMES,
  scheduleIdProblem,
} from '../../client';
import { FORMATS } from '../batch-input/format';
import { readBatch } from '../batch-input/read-batch';
import { type PromptFlags, readPrompt } from '../prompt-source';
import { addOptionFlags, type RequestFlags, requestOfFlags } from '../request-flags';
import type { Session } from '../session';
import { UsageError } from '../usage-error';

/** The flags of what a schedule sends: those of `batch run`. */
export interface ItemFlags extends RequestFlags, PromptFlags {
  readonly format?: string;
}

export function addItemFlags(command: Command): Command {
  command
    .option('--format <format>', `${FORMATS.join(' or ')} (default: by the name of the file, or its content)`)
    .option('--project <id>', 'project of lines that name none')
    .option('--job <id>', 'job of lines that name none')
    .option('--prompt <text>', 'message of lines that have none')
    .option('--prompt-file <file>', 'as --prompt, from a file; it is sent unaltered');
  return addOptionFlags(command);
}

/**
 * Reads what a schedule is to send, from a file or stdin.
 *
 * @throws UsageError, InvalidScheduleError, InvalidBatchError with every line that is wrong
 */
export async function readItems(
  { stdin }: Session,
  scheduleId: string,
  file: string,
  flags: ItemFlags,
): Promise<CheckedBatch> {
  const problem = scheduleIdProblem(scheduleId);
  if (problem !== undefined) throw new InvalidScheduleError([`scheduleId: ${problem}`]);
  if (file === '-' && flags.promptFile === '-') {
    throw new UsageError(['--prompt-file: stdin can be read once only, and the items come from there']);
  }
  const { format } = flags;
  const prompt = await readPrompt(flags, stdin);
  const batchId = exampleBatchId(scheduleId);
  return readBatch({ file, stdin, format, flags, prompt, batchId, noNames: NO_NAMES });
}

/** Flags that say something of items, where no items are given. @throws UsageError */
export function refuseItemFlags(flags: ItemFlags): void {
  const { format, promptFile, prompt } = flags;
  const given = { ...requestOfFlags(flags, prompt, undefined), format, promptFile };
  if (Object.values(given).every((value) => value === undefined)) return;
  throw new UsageError([
    'FILE: is missing, and flags are given that belong to what it holds (--project, --prompt, --when-active, …)',
  ]);
}
