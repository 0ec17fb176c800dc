import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { eventually } from '../../../tools/lib/eventually';
import { mustRun, Program } from '../../harness/program';

/** A booted Debian with systemd as its first process. The machine shares the network of this machine. */
export class SystemdMachine {
  private output = '';
  private readonly exited: Promise<unknown>;

  private constructor(
    private readonly root: string,
    private readonly process: ChildProcess,
  ) {
    for (const stream of [process.stdout, process.stderr])
      stream?.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
    this.exited = once(process, 'exit');
  }

  /**
   * Boots a Debian folder. The folder stays unchanged, because an overlay receives all changes.
   *
   * @param folder an empty folder for the overlay
   */
  static async boot(debian: string, folder: string): Promise<SystemdMachine> {
    const [upper, work, root] = ['upper', 'work', 'root'].map((name) => path.join(folder, name)) as [
      string,
      string,
      string,
    ];
    for (const each of [upper, work, root]) await mkdir(each);
    const layers = `lowerdir=${debian},upperdir=${upper},workdir=${work}`;
    await mustRun('mount', ['-t', 'overlay', 'overlay', '-o', layers, root]);
    const options = ['-D', root, '--register=no', '--keep-unit', '--console=pipe', '-b'];
    const machine = new SystemdMachine(
      root,
      spawn('systemd-nspawn', options, { stdio: ['ignore', 'pipe', 'pipe'] }),
    );
    await machine.waitUntilBooted().catch(async (error: unknown) => {
      await machine.close();
      throw new Error(`systemd did not boot:\n${machine.output}`, { cause: error });
    });
    return machine;
  }

  /** Runs shell commands in the folder of root. @throws Error with the output if a command fails */
  async run(commands: string, stdin?: string): Promise<string> {
    return mustRun('nsenter', await this.enter('sh', '-euc', `cd\n${commands}`), { ...(stdin && { stdin }) });
  }

  /** Starts shell commands as root in the machine. */
  async start(commands: string): Promise<Program> {
    return new Program('nsenter', await this.enter('sh', '-euc', commands));
  }

  async writeFile(file: string, text: string): Promise<void> {
    await writeFile(path.join(this.root, file), text);
  }

  async copyFile(source: string, file: string): Promise<void> {
    await copyFile(source, path.join(this.root, file));
  }

  /** Ends all processes of the machine, and removes the overlay. */
  async close(): Promise<void> {
    // systemd-nspawn ends with systemd. Without systemd-nspawn, systemd and its services would continue.
    if (this.process.exitCode === null) process.kill(await this.findSystemd(), 'SIGKILL');
    await this.exited;
    await eventually('the overlay is not in use', () => mustRun('umount', [this.root]).then(() => true));
  }

  private async waitUntilBooted(): Promise<void> {
    const state = () => this.run('systemctl is-system-running || true');
    await eventually('systemd has booted', async () =>
      this.process.exitCode === null ? /^(running|degraded)/.test(await state()) : 'ended',
    );
    if (this.process.exitCode !== null) throw new Error('systemd-nspawn has ended');
  }

  /** Returns the process ID of systemd, which is the only child of systemd-nspawn. */
  private async findSystemd(): Promise<number> {
    return Number(await readFile(`/proc/${this.process.pid}/task/${this.process.pid}/children`, 'utf8'));
  }

  private async enter(...command: string[]): Promise<string[]> {
    return [
      '--target',
      String(await this.findSystemd()),
      '--all',
      '--root',
      '--wd',
      '--',
      '/usr/bin/env',
      '-i',
      'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
      'HOME=/root',
      ...command,
    ];
  }
}
