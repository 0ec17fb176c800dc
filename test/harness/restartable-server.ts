import path from 'node:path';
import { type DevServer, type DevServerOptions, startDevServer } from '../../tools/lib/dev-server';
import { temporal } from './temporal';
import { temporaryFolder } from './temporary-folder';

const folder = temporaryFolder();

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
    const databaseFile = path.join(folder, 'temporal.db');
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

  async restart(): Promise<void> {
    await this.kill();
    this.server = await startDevServer({ ...this.options, port: Number(this.address.split(':')[1]) });
  }
}
