import {
  type CheckedBatch,
  exampleBatchId,
  InvalidScheduleError,
  NO_NAMES,
  scheduleIdProblem,
} from '../../client';
import { readBatch } from '../batch-input/read-batch';
import { readPrompt } from '../prompt-source';
import { type LineFlags, requestOfFlags } from '../request-flags';
import type { Session } from '../session';
import { UsageError } from '../usage-error';

/**
 * Reads what a schedule is to send, from a file or stdin.
 *
 * @throws UsageError, InvalidScheduleError, InvalidBatchError with every line that is wrong
 */
export async function readItems(
  { stdin }: Session,
  scheduleId: string,
  file: string,
  flags: LineFlags,
): Promise<CheckedBatch> {
  const problem = scheduleIdProblem(scheduleId);
  if (problem !== undefined) throw new InvalidScheduleError([`scheduleId: ${problem}`]);
  if (file === '-' && flags.promptFile === '-') {
    throw new UsageError(['--prompt-file: stdin can be read once only, and the items come from there']);
  }
  const prompt = await readPrompt(flags, stdin);
  const batchId = exampleBatchId(scheduleId);
  return readBatch({ file, stdin, flags, prompt, batchId, noNames: NO_NAMES });
}

/** Flags that say something of items, where no items are given. @throws UsageError */
export function refuseLineFlags(flags: LineFlags): void {
  const { format, promptFile, prompt } = flags;
  const given = { ...requestOfFlags(flags, prompt, undefined), format, promptFile };
  if (Object.values(given).every((value) => value === undefined)) return;
  throw new UsageError([
    'FILE: is missing, and flags are given that belong to what it holds (--project, --prompt, --when-active, …)',
  ]);
}
