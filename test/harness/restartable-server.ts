import { cp, mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { type DevServer, type DevServerOptions, startDevServer } from '../../tools/lib/dev-server';
import { temporal } from './temporal';
import { temporaryFolder } from './temporary-folder';

const folder = temporaryFolder();
const BACKUP = path.join(folder, 'backup');
const DATABASE_NAME = 'temporal.db';

/**
 * Copies the files of the database: the main file, and the journal or the log of SQLite if it exists. A server that was killed
 * during a transaction leaves a journal. Without the journal, the main file has a part of this transaction.
 */
async function copyDatabase(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const suffix of ['', '-journal', '-wal', '-shm']) {
    const copy = path.join(to, DATABASE_NAME + suffix);
    await rm(copy, { force: true });
    await cp(path.join(from, DATABASE_NAME + suffix), copy).catch((error: unknown) => {
      if (suffix === '') throw error;
    });
  }
}

/** A Temporal server with a SQLite file. A test can kill the server and start it again with the same file and port. */
export class RestartableServer {
  private constructor(
    private server: DevServer,
    private readonly options: DevServerOptions,
  ) {}

  /**
   * Runs a server for the duration of a test. A test file can use this function once, because all its servers would share one
   * file.
   */
  static async with(test: (server: RestartableServer) => Promise<void>): Promise<void> {
    const databaseFile = path.join(folder, DATABASE_NAME);
    const options = { cli: temporal().cli, databaseFile, searchAttributes: true };
    const server = new RestartableServer(await startDevServer(options), options);
    await test(server).finally(() => server.server.stop());
  }

  get address(): string {
    return this.server.address;
  }

  async kill(): Promise<void> {
    await this.server.stop();
  }

  /** Kills the server, copies its database, and starts the server again. */
  async backUp(): Promise<void> {
    await this.kill();
    await copyDatabase(folder, BACKUP);
    await this.restart();
  }

  /** Kills the server, and starts it with the copied database. The server has then lost all later writes. */
  async restoreBackup(): Promise<void> {
    await this.kill();
    await copyDatabase(BACKUP, folder);
    await this.restart();
  }

  async restart(): Promise<void> {
    await this.kill();
    this.server = await startDevServer({ ...this.options, port: Number(this.address.split(':')[1]) });
  }
}
