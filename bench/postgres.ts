import { execFile } from 'node:child_process';
import { chown, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePorts } from '../dev/free-ports';
import { keepWords, spawnTethered, type TetheredProcess } from '../dev/tether';

/** Where Debian's packages put the programs of each version. */
const DEBIAN = '/usr/lib/postgresql';

/** Of the database's only user, on loopback, in a folder that goes with it. */
const USER = 'temporal';
const PASSWORD = 'temporal';

const HOST = '127.0.0.1';

/** A start takes a second; one after a crash replays its log, and first waits for what is left of the crashed one. */
const START_LIMIT_MS = 60_000;

/** A fast shutdown breaks off what is under way and writes a checkpoint. */
const STOP_GRACE_MS = 20_000;

/** A PostgreSQL of our own on a free port of 127.0.0.1, with an empty database, which goes when it is closed. */
export class Postgres {
  readonly host = HOST;
  readonly user = USER;
  readonly password = PASSWORD;
  private process: TetheredProcess | undefined;

  private constructor(
    private readonly programs: string,
    private readonly folder: string,
    readonly port: number,
  ) {}

  /** @throws Error that names the package where PostgreSQL is not installed */
  static async open(): Promise<Postgres> {
    const programs = await installed();
    const folder = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-postgres-'));
    const [port = 0] = await freePorts(1);
    const postgres = new Postgres(programs, folder, port);
    try {
      await postgres.initialize();
      await postgres.start();
      return postgres;
    } catch (error) {
      await postgres.close();
      throw error;
    }
  }

  get pid(): number {
    if (this.process === undefined) throw new Error('PostgreSQL does not run');
    return this.process.pid;
  }

  /** Starts it again on the same data and port, and waits until it takes connections. */
  async start(): Promise<void> {
    const giveUpAt = Date.now() + START_LIMIT_MS;
    const settings = [`listen_addresses=${HOST}`, 'unix_socket_directories=', 'max_connections=200'];
    const args = ['-D', this.data, '-p', String(this.port), ...settings.flatMap((each) => ['-c', each])];
    for (;;) {
      const [command, ...rest] = asPlainUser(path.join(this.programs, 'postgres'), args);
      const started = await spawnTethered(command, rest, {
        env: { PATH: process.env.PATH },
        stdout: 'pipe',
        stderr: 'pipe',
        graceMs: STOP_GRACE_MS,
      });
      const lastWords = keepWords(started.stdout, started.stderr);
      const end = { come: false };
      void started.exited.then(() => (end.come = true));
      while (!end.come && Date.now() < giveUpAt) {
        if (await this.takesConnections()) {
          this.process = started;
          return;
        }
        await sleep(100);
      }
      await started.stop();
      // After a crash the old one's processes may still hold its memory for a moment.
      if (Date.now() > giveUpAt)
        throw new Error(`PostgreSQL did not start. It said:\n${await lastWords(15)}`);
      await sleep(500);
    }
  }

  /** A crash: the postmaster and all of its processes. */
  async kill(): Promise<void> {
    this.process?.kill('SIGKILL');
    await this.process?.exited;
  }

  /** A restart in good order that breaks off what is under way, as `pg_ctl restart` does. */
  async restart(): Promise<void> {
    this.process?.kill('SIGINT');
    await this.process?.exited;
    await this.start();
  }

  async close(): Promise<void> {
    await this.process?.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  private get data(): string {
    return path.join(this.folder, 'data');
  }

  private async initialize(): Promise<void> {
    const passwordFile = path.join(this.folder, 'password');
    await writeFile(passwordFile, PASSWORD);
    if (isRoot()) {
      const { stdout } = await run('id', ['-u', 'postgres']);
      for (const place of [this.folder, passwordFile]) await chown(place, Number(stdout), -1);
    }
    const args = ['-D', this.data, '-U', USER, '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
    const [command, ...rest] = asPlainUser(path.join(this.programs, 'initdb'), args);
    await run(command, rest, { cwd: this.folder });
  }

  private takesConnections(): Promise<boolean> {
    const args = ['-h', HOST, '-p', String(this.port), '-U', USER, '-q'];
    return run(path.join(this.programs, 'pg_isready'), args).then(
      () => true,
      () => false,
    );
  }
}

const run = promisify(execFile);

const isRoot = (): boolean => process.getuid?.() === 0;

/** PostgreSQL refuses to run as root; Debian's package makes a user for it. */
function asPlainUser(program: string, args: readonly string[]): [string, ...string[]] {
  const asPostgres = ['--reuid=postgres', '--regid=postgres', '--clear-groups', program];
  return isRoot() ? ['setpriv', ...asPostgres, ...args] : [program, ...args];
}

/** The folder with the programs of the newest version. */
async function installed(): Promise<string> {
  const versions = await readdir(DEBIAN).catch(() => []);
  const [newest] = versions.sort((one, other) => Number(other) - Number(one));
  if (newest === undefined)
    throw new Error(`there is no PostgreSQL in ${DEBIAN}: run "apt-get install postgresql"`);
  return path.join(DEBIAN, newest, 'bin');
}
