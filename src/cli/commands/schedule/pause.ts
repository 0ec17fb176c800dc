import { Command } from 'commander';
import type { Session } from '../../session';

interface PauseFlags {
  readonly note: string;
  readonly json?: boolean;
}

export function schedulePauseCommand(session: Session): Command {
  return new Command('pause')
    .summary('let a schedule fire no more until it is unpaused')
    .description('Pauses a schedule: it fires when triggered only. A batch that runs goes on.')
    .argument('<id>', 'of the schedule')
    .option('--note <text>', 'why, shown in lists and in the Web UI', 'paused by the starter')
    .option('--json', 'print one JSON document: { scheduleId, paused, note }')
    .action(async (id: string, flags: PauseFlags) => {
      await (await session.connect()).schedules.pause(id, flags.note);
      tell(session, id, true, flags);
    });
}

export function scheduleUnpauseCommand(session: Session): Command {
  return new Command('unpause')
    .summary('let a paused schedule fire again')
    .description(
      'Lets a schedule fire again from its next time on; those that have passed are not made up for.',
    )
    .argument('<id>', 'of the schedule')
    .option('--note <text>', 'why, shown in lists and in the Web UI', 'unpaused by the starter')
    .option('--json', 'print one JSON document: { scheduleId, paused, note }')
    .action(async (id: string, flags: PauseFlags) => {
      await (await session.connect()).schedules.unpause(id, flags.note);
      tell(session, id, false, flags);
    });
}

function tell({ output }: Session, scheduleId: string, paused: boolean, { note, json }: PauseFlags): void {
  if (json === true) output.json({ scheduleId, paused, note });
  output.note(paused ? 'paused' : 'unpaused');
}
