import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { type DevServer, type DevServerOptions, startDevServer } from '../../dev/dev-server';
import { temporal } from './temporal';

/** A Temporal server on a SQLite file, which can be killed and started again on the same file and port. */
export class RestartableServer {
  private constructor(
    private server: DevServer,
    private readonly options: DevServerOptions,
  ) {}

  /** Runs one for the length of a test. */
  static async with(test: (server: RestartableServer) => Promise<void>): Promise<void> {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'restartable-server-'));
    try {
      const databaseFile = path.join(folder, 'temporal.db');
      const options = { cli: temporal().cli, databaseFile, searchAttributes: true };
      const server = new RestartableServer(await startDevServer(options), options);
      await test(server).finally(() => server.server.stop());
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  get address(): string {
    return this.server.address;
  }

  async kill(): Promise<void> {
    this.server.kill();
    await this.server.exited;
  }

  async restart(): Promise<void> {
    this.server = await startDevServer({ ...this.options, port: this.server.port });
  }
}
