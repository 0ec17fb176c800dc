import { Command } from 'commander';
import { addStartFlags, batchOptionsOf, type StartFlags } from '../../batch/flags';
import { runBatch } from '../../batch/run-batch';
import { COLUMNS } from '../../batch-input/fields';
import { readBatch } from '../../batch-input/read-batch';
import { readPrompt } from '../../prompt-source';
import { addLineFlags, type LineFlags } from '../../request-flags';
import type { Session } from '../../session';
import { UsageError } from '../../usage-error';

interface RunFlags extends StartFlags, LineFlags {
  readonly batchId?: string;
}

export function batchRunCommand(session: Session): Command {
  const command = new Command('run')
    .summary('send the follow-ups of a file, and wait for their jobs')
    .description(
      'Checks the whole input, and sends nothing if any line of it is wrong. Then sends each line as a follow-up of its ' +
        'own, so many at a time, two to one job one after the other, and waits until all have ended.\n\n' +
        'The same file again is the same batch: while it runs, this attaches to it; if it was cancelled, has failed or was ' +
        'only partly handed over, it goes on, and what was sent is not sent again; if it is done, nothing is sent.',
    )
    .argument('<file>', 'JSON Lines or CSV; - for stdin')
    .option(
      '--batch-id <id>',
      'your name for the batch (default: a hash of its projects, jobs, prompts and request ids)',
    );
  addStartFlags(command);
  return addLineFlags(command)
    .addHelpText(
      'after',
      `
A line of JSON Lines is one object, with the fields of a request: {"project": "docs", "job": "job-1", "prompt": "…"}.
The first line of CSV names its columns. Both know: ${COLUMNS.join(', ')}.
What a line does not say is taken from the flags.

Examples:
  $ ${session.command('batch', 'run', 'nightly.csv')}
  $ ${session.command('batch', 'run', 'nightly.jsonl', '--batch-id', 'nightly-07-31', '--concurrency', '200', '--tolerate', '5%')}
  $ ${session.command('batch', 'run', '-', '--prompt', 'Rebase on main.', '--json')} < jobs.csv`,
    )
    .action((file: string, flags: RunFlags) => run(session, file, flags));
}

async function run(session: Session, file: string, flags: RunFlags): Promise<void> {
  if (file === '-' && flags.promptFile === '-') {
    throw new UsageError(['--prompt-file: stdin can be read once only, and the items come from there']);
  }
  batchOptionsOf(flags);
  const prompt = await readPrompt(flags, session.stdin);
  const batch = await readBatch({ file, stdin: session.stdin, flags, prompt, batchId: flags.batchId });
  const { items } = batch;
  // Before anything is started: whoever is cut off from here on can come back by it.
  session.output.note(
    `batch       ${batch.batchId} (${items.length} ${items.length === 1 ? 'item' : 'items'})`,
  );
  const alreadyDone = `already run as ${batch.batchId}; give --batch-id to send it once more. This is its end`;
  await runBatch(
    session,
    batch.batchId,
    (batches, options) => batches.start(batch, options),
    flags,
    alreadyDone,
  );
}
