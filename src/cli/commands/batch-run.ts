import { Command } from 'commander';
import type { BatchClient, BatchOptions, StartedBatch } from '../../client';
import { COLUMNS } from '../batch-input/lines';
import { readBatch } from '../batch-input/read-batch';
import { EXIT, UsageError } from '../exit-codes';
import { addStartFlags, batchOptionsOf, type StartFlags } from '../flags/batch-flags';
import { addLineFlags, type LineFlags } from '../flags/request-flags';
import { readPrompt } from '../flags/prompt-source';
import { followBatch } from '../render/batch-follow';
import { printBatchOutcome } from '../render/batch-text';
import { progressLine } from '../render/progress-line';
import type { Session } from '../session';
import { untilSignal } from '../wait';

interface RunFlags extends StartFlags, LineFlags {
  readonly batchId?: string;
}

export function batchRunCommand(session: Session): Command {
  const command = new Command('run')
    .summary('send the follow-ups of a file, and wait for their jobs')
    .description(
      'Checks the whole input, and sends nothing if any line is wrong. Then sends each line as a follow-up of its own ' +
        'with limited concurrency, one at a time to each job, and waits until all have ended.\n\n' +
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
Fields that a line leaves out are taken from the flags.

Examples:
  $ ${session.command('batch', 'run', 'nightly.csv')}
  $ ${session.command('batch', 'run', 'nightly.jsonl', '--batch-id', 'nightly-07-31', '--concurrency', '200', '--tolerate', '5%')}
  $ ${session.command('batch', 'run', '-', '--prompt', 'Rebase on main.', '--json')} < jobs.csv`,
    )
    .action((file: string, flags: RunFlags) => run(session, file, flags));
}

async function run(session: Session, file: string, flags: RunFlags): Promise<void> {
  if (file === '-' && flags.promptFile === '-') {
    throw new UsageError(['--prompt-file: stdin can be read only once, and the items are read from it']);
  }
  batchOptionsOf(flags);
  const prompt = await readPrompt(flags, session.stdin);
  const batch = await readBatch({ file, stdin: session.stdin, flags, prompt, batchId: flags.batchId });
  const { items } = batch;
  // Printed before anything is started, so that an interrupted caller can come back by it.
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

interface RetryFlags extends StartFlags {
  readonly includeUnknown?: boolean;
}

export function batchRetryCommand(session: Session): Command {
  const command = new Command('retry')
    .summary('send what was not sent or was rejected')
    .description(
      'Runs an ended batch once more: sends exactly those of its items whose message was not sent or was rejected, under ' +
        'their own names, and waits for it as run does. Every other item keeps its end. Whatever is run next, this ' +
        'command again or "batch run" with the same file, sends no item twice.',
    )
    .argument('<batch>', 'batch id, or workflow id')
    .option(
      '--include-unknown',
      'also send items whose delivery is unknown; those that did arrive are sent twice',
    );
  return addStartFlags(command)
    .addHelpText('after', `\nExample:\n  $ ${session.command('batch', 'retry', 'nightly-07-31')}`)
    .action((batch: string, flags: RetryFlags) => retry(session, batch, flags));
}

async function retry(session: Session, batchId: string, flags: RetryFlags): Promise<void> {
  const includeUnknown = flags.includeUnknown === true;
  const unknown = includeUnknown ? '' : ' --include-unknown also sends items whose delivery is unknown.';
  await runBatch(
    session,
    batchId,
    (batches, options) => batches.getHandle(batchId).retry({ ...options, includeUnknown }),
    flags,
    `Nothing to retry: no message of ${batchId} was left unsent or rejected.${unknown} This is its end`,
  );
}

export function batchWatchCommand(session: Session): Command {
  return new Command('watch')
    .summary('wait for a batch, as run does')
    .description(
      'Shows the progress of a batch until it ends, and prints its end. The exit code is that of run.',
    )
    .argument('<batch>', 'batch id, or workflow id')
    .option(
      '--json',
      'print JSON lines: one per item in the order of settling, and { batchId, state, message, summary } at the end',
    )
    .addHelpText('after', `\nExample:\n  $ ${session.command('batch', 'watch', 'nightly-07-31')}`)
    .action((batch: string, flags: { json?: boolean }) => watch(session, batch, flags.json === true));
}

async function watch(session: Session, batchId: string, json: boolean): Promise<void> {
  const { batches } = await session.connect();
  await batches.getHandle(batchId).describe();
  session.output.jsonLines = json;
  const over = new AbortController();
  try {
    await waitForBatch(session, batchId, json, untilLeft(session, over.signal));
  } finally {
    over.abort();
  }
}

/** What starts a batch; null when there is nothing to start. */
type Start = (batches: BatchClient, options: BatchOptions) => Promise<StartedBatch | null>;

/**
 * Starts a batch, or goes on with the one of its id, and waits for its end. Ctrl-C ends the waiting, not the batch.
 *
 * @param nothingToDo what to say when the batch stays as it is
 */
async function runBatch(
  session: Session,
  batchId: string,
  start: Start,
  flags: StartFlags,
  nothingToDo: string,
): Promise<void> {
  const { output } = session;
  const json = flags.json === true;
  const options = batchOptionsOf(flags);
  await session.connect();
  if (flags.wait) output.jsonLines = json;
  const over = new AbortController();
  const left = untilLeft(session, over.signal);
  try {
    const handedOver = await handOver(session, start, options, left);
    if ('leftBy' in handedOver) {
      output.note(
        [
          `Stopped during the hand-over: ${handedOver.pages}. Items that are handed over are sent.`,
          '  hand over the rest:  the same command again, within an hour',
          `  or cancel it:        ${session.command('batch', 'cancel', batchId)}`,
        ].join('\n'),
      );
      session.exitCode = exitCodeOfSignal(handedOver.leftBy);
      return;
    }
    const { started } = handedOver;
    if (started === null) output.note(nothingToDo);
    else await printStarted(session, started, flags, nothingToDo);
    if (!flags.wait) {
      if (json) output.json(started ?? { batchId, attached: 'ended' });
      else output.result(batchId);
      output.note(`watch it    ${session.command('batch', 'watch', batchId)}`);
      return;
    }
    await waitForBatch(session, batchId, json, left);
  } finally {
    over.abort();
  }
}

/** A signal ends the waiting, and so does the end of whoever reads the results. */
function untilLeft({ output }: Session, over: AbortSignal): Left {
  return Promise.race([untilSignal(over), output.readerGone]);
}

/** Waits for the end of a batch, tells it, and takes its exit code; or tells how to come back. */
async function waitForBatch(session: Session, batchId: string, json: boolean, left: Left): Promise<void> {
  const { output } = session;
  const waited = await followBatch(session, batchId, json, left);
  if ('ended' in waited) {
    printBatchOutcome(session, batchId, waited.ended, json);
    return;
  }
  output.note(
    [
      'Stopped waiting; the batch continues.',
      `  come back:    ${session.command('batch', 'watch', batchId)}`,
      `  look at it:   ${session.command('batch', 'status', batchId)}`,
      `  cancel it:    ${session.command('batch', 'cancel', batchId)}`,
    ].join('\n'),
  );
  session.exitCode = exitCodeOfSignal(waited.leftBy);
}

type Left = Promise<{ readonly leftBy: NodeJS.Signals }>;

async function handOver(
  session: Session,
  start: Start,
  options: BatchOptions,
  left: Left,
): Promise<
  { readonly started: StartedBatch | null } | { readonly leftBy: NodeJS.Signals; readonly pages: string }
> {
  const { batches } = await session.connect();
  const line = progressLine(session.output.stderr, session.env);
  let pages = 'no page yet';
  const onPage = (handedOver: number, total: number): void => {
    pages = `${handedOver} of ${total} pages`;
    // Where lines can't be rewritten, each tenth gets a line.
    if (total > 1) line.show(`handed over ${pages}`, String(Math.floor((10 * handedOver) / total)));
  };
  try {
    const starting = start(batches, { ...options, onPage }).then((started) => ({ started }));
    const first = await Promise.race([starting, left]);
    return 'started' in first ? first : { ...first, pages };
  } finally {
    line.clear();
  }
}

async function printStarted(
  session: Session,
  started: StartedBatch,
  flags: StartFlags,
  nothingToDo: string,
): Promise<void> {
  const { output } = session;
  const { batchId, workflowId, attached, resumedAfter } = started;
  const page = await session.webUiPage(workflowId);
  if (page !== undefined) output.note(`web ui      ${page}`);
  if (attached === 'ended') output.note(nothingToDo);
  if (resumedAfter !== null) {
    output.note(`resumed     it was ${resumedAfter}; what has been sent is not sent again`);
  }
  if (attached !== 'running') return;
  output.note('attached    this batch is running; nothing is sent again');
  if (flags.concurrency !== undefined || flags.tolerate !== undefined) {
    const change = session.command('batch', 'concurrency', batchId, flags.concurrency ?? 'N');
    output.note(`note        it keeps its own concurrency and tolerance; ${change} changes the first`);
  }
}

function exitCodeOfSignal(signal: NodeJS.Signals): number {
  if (signal === 'SIGPIPE') return EXIT.readerGone;
  return signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated;
}
