import { lookup } from 'node:dns/promises';
import {
  type Logger,
  NativeConnection,
  type NativeConnectionOptions,
  Runtime,
  type RuntimeOptions,
} from '@temporalio/worker';
import { formatListenAddress, type ListenAddress, type Listener, type LogLevelName } from './variables';
import { ConfigurationError } from './config';

/** The error text of the Rust core when its metrics server can't listen (SDK 1.24, measured). */
const EXPORTER_FAILED = /prometheus/i;

/**
 * The SDK's runtime: its logger, its metrics, and no signal handlers of its own (`exit.ts` has them).
 *
 * The SDK drops its runtime, and closes the metrics port, whenever a connection fails. The next attempt makes a new one,
 * and may find the port taken by another process that also waits.
 */
export class SdkRuntime {
  private installed = false;

  private constructor(
    private readonly metrics: Listener,
    private metricsAddress: string | undefined,
    private readonly options: RuntimeOptions,
    private readonly logger: Logger,
  ) {}

  /**
   * @param metrics where Prometheus finds `/metrics`
   * @throws ConfigurationError when the metrics can't listen at an address that was set. If a default address is taken, for
   *   example by a second worker on the host, that is a warning, and this process goes without metrics.
   */
  static async install(metrics: Listener, level: LogLevelName, logger: Logger): Promise<SdkRuntime> {
    // Normally only warnings of the core matter; for debugging, more of its lines do.
    const core = level === 'debug' || level === 'trace' ? 'DEBUG' : 'WARN';
    const logging = { filter: { core, other: 'ERROR' }, forward: {} } as const;
    const options = { logger, shutdownSignals: [], telemetryOptions: { logging } };
    const metricsAddress = metrics === 'off' ? undefined : await resolved(metrics.address);
    const runtime = new SdkRuntime(metrics, metricsAddress, options, logger);
    runtime.install();
    return runtime;
  }

  /** One attempt to connect. */
  async connect(options: NativeConnectionOptions): Promise<NativeConnection> {
    if (!this.installed) this.install();
    try {
      return await NativeConnection.connect(options);
    } catch (error) {
      this.installed = false;
      throw error;
    }
  }

  /** Where `/metrics` is served, or null. */
  get servesMetricsAt(): string | null {
    return this.metricsAddress ?? null;
  }

  /** Shows the worker's version as a metric, once the connection stands: an earlier runtime is gone with its metrics. */
  showVersion(version: string): void {
    const { metricMeter } = Runtime.instance();
    metricMeter
      .createGauge('agent_follow_up_worker_info', 'int', '', 'Always 1; the label is the version')
      .set(1, { version });
  }

  private install(): void {
    if (this.metricsAddress === undefined) {
      Runtime.install(this.options);
    } else {
      this.installWithMetrics(this.metricsAddress);
    }
    this.installed = true;
  }

  private installWithMetrics(bindAddress: string): void {
    const telemetryOptions = { ...this.options.telemetryOptions, metrics: { prometheus: { bindAddress } } };
    try {
      Runtime.install({ ...this.options, telemetryOptions });
    } catch (error) {
      if (!(error instanceof Error) || !EXPORTER_FAILED.test(error.message)) throw error;
      const problem = `FOLLOW_UP_METRICS_ADDRESS: ${bindAddress} can't be used (${error.message}); give another address or off`;
      if (this.metrics !== 'off' && this.metrics.chosen) throw new ConfigurationError([problem]);
      this.logger.warn(`no metrics: ${problem}`);
      this.metricsAddress = undefined;
      Runtime.install(this.options);
    }
  }
}

/** The core takes IP addresses only. */
async function resolved({ host, port }: ListenAddress): Promise<string> {
  try {
    return formatListenAddress({ host: (await lookup(host)).address, port });
  } catch (error) {
    const problem = `FOLLOW_UP_METRICS_ADDRESS: the host ${host} is not known (${String(error)}); give an IP address or another name`;
    throw new ConfigurationError([problem]);
  }
}
