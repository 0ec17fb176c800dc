import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, extname, join, resolve } from 'node:path';
import {
  type BundleOptions,
  bundleWorkflowCode,
  DefaultLogger,
  Runtime,
  type Worker,
  type WorkerOptions,
  type WorkerPlugin,
} from '@temporalio/worker';
import { FollowUpError } from '../contract/follow-up-error';
import { ConfigurationError } from '../temporal/connection-config';
import type { TemporalPlugin } from '../temporal/plugins';

const ROOT = resolve(__dirname, '..');

const BUNDLE = join(ROOT, 'workflow-bundle.js');

/**
 * Returns the file of the prebuilt bundle if this code is compiled. From source, returns undefined, and the worker bundles the
 * workflows in about 3 s.
 *
 * @throws FollowUpError if the bundle does not exist
 */
export function findPrebuiltBundle(): string | undefined {
  if (extname(__filename) !== '.js') return undefined;
  if (existsSync(BUNDLE)) return BUNDLE;
  throw new FollowUpError(
    'INVALID_CONFIGURATION',
    `the workflow bundle ${BUNDLE} does not exist; run "npm run build"`,
  );
}

/** The folders of the pure modules, which workflows share. */
const PURE_FOLDERS = ['contract', 'follow-up', 'batch'];

/**
 * Bundles the workflows. Workflows use no state of the pure modules, so these modules are evaluated once for all workflows. Each
 * workflow then needs a third of the heap, and starts in half the time. `npm run bench:in-flight` measures the memory.
 */
export async function bundleCode(options: Partial<BundleOptions> = {}): Promise<string> {
  const modules = PURE_FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { encoding: 'utf8', recursive: true })
      .filter((file) => /(?<!\.d)\.[jt]s$/.test(file))
      .map((file) => join(ROOT, folder, file)),
  );
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(ROOT, 'workflows'),
    logger: new DefaultLogger('WARN'),
    ...options,
    preloadModules: [...modules, ...(options.preloadModules ?? [])],
  });
  return code;
}

/** The packages of the SDK that a bundle must contain once. A plugin in another folder may have its own copies. */
const SINGLE_PACKAGES = ['@temporalio/common', '@temporalio/workflow'];

type WebpackConfig = Parameters<NonNullable<BundleOptions['webpackConfigHook']>>[0];

function useSinglePackages(config: WebpackConfig): WebpackConfig {
  const { alias = {} } = config.resolve ?? {};
  const folders = SINGLE_PACKAGES.map((name) => {
    const folder = dirname(require.resolve(`${name}/package.json`));
    return { name, alias: folder };
  });
  const aliases = Array.isArray(alias)
    ? [...alias, ...folders]
    : { ...alias, ...Object.fromEntries(folders.map((each) => [each.name, each.alias])) };
  return { ...config, resolve: { ...config.resolve, alias: aliases } };
}

/**
 * Chooses the code of a worker's workflows. This plugin must be the last one in the worker's list, because it needs the options
 * that the other plugins have changed. Unless a plugin changes the code, the worker uses the prebuilt bundle.
 */
export class WorkflowCodePlugin implements WorkerPlugin {
  readonly name = 'agent-follow-up-workflow-code';
  /** Called when a worker runs, because a worker can't be shut down earlier. */
  onRunning: (worker: Worker) => void = () => undefined;

  /**
   * @param taskQueue the task queue of the workflows; workers of other task queues have no workflows
   * @param plugins the other plugins
   * @param bundlePath the file of the prebuilt bundle; if undefined, the worker always bundles the workflows
   */
  constructor(
    private readonly taskQueue: string,
    private readonly plugins: readonly Pick<TemporalPlugin, 'configureBundler'>[],
    private readonly bundlePath: string | undefined,
  ) {}

  /** @throws ConfigurationError if the workflows can't be bundled with the plugins */
  async configureWorker(received: WorkerOptions): Promise<WorkerOptions> {
    if (received.taskQueue !== this.taskQueue) return received;
    // The SDK warns about each of these options if the worker has a bundle.
    const { workflowsPath, workflowBundle, bundlerOptions, ...worker } = received;
    if (workflowBundle !== undefined || workflowsPath === undefined) {
      const text =
        'a plugin has replaced the workflows of follow-ups with a bundle; set workflowsPath in the plugin instead';
      throw pluginsError(text);
    }
    const { workflowModules, ...interceptors } = worker.interceptors ?? {};
    const { payloadConverterPath, failureConverterPath } = worker.dataConverter ?? {};
    const options = this.applyPlugins({
      ...bundlerOptions,
      ...{ workflowsPath, workflowInterceptorModules: workflowModules ?? [] },
      ...(payloadConverterPath !== undefined && { payloadConverterPath }),
      ...(failureConverterPath !== undefined && { failureConverterPath }),
    });
    const changed = changedOptions(options, workflowsPath);
    if (this.bundlePath !== undefined && changed.length === 0)
      return { ...worker, workflowBundle: { codePath: this.bundlePath } };
    const started = performance.now();
    const code = await bundleWithPlugins(options);
    const bundleMs = Math.round(performance.now() - started);
    Runtime.instance().logger.info('bundled the workflows', { bundleMs, changed });
    // The SDK warns about interceptors that it did not bundle itself.
    return { ...worker, interceptors, workflowBundle: { code } };
  }

  /** Starts the worker, and then calls `onRunning`. This plugin is the last one, so no other plugin delays the start in between. */
  async runWorker(worker: Worker, next: (worker: Worker) => Promise<void>): Promise<void> {
    const ended = next(worker);
    this.onRunning(worker);
    await ended;
  }

  private applyPlugins(options: BundleOptions): BundleOptions {
    return this.plugins.reduce((changed, plugin) => plugin.configureBundler?.(changed) ?? changed, options);
  }
}

/** Returns the names of the options with which the code differs from the prebuilt bundle. */
function changedOptions(options: BundleOptions, ownPath: string): string[] {
  const isSet = (value: unknown) => value !== undefined && !(Array.isArray(value) && value.length === 0);
  return Object.entries(options)
    .filter(([name, value]) => (name === 'workflowsPath' ? value !== ownPath : isSet(value)))
    .map(([name]) => name);
}

/** @throws ConfigurationError with webpack's own text, which the SDK's error does not contain */
async function bundleWithPlugins(options: BundleOptions): Promise<string> {
  const reports: string[] = [];
  const logger = new DefaultLogger('ERROR', ({ message }) => reports.push(message));
  const { webpackConfigHook = (config: WebpackConfig) => config } = options;
  const hook = (config: WebpackConfig) => useSinglePackages(webpackConfigHook(config));
  try {
    return await bundleCode({ ...options, plugins: [], logger, webpackConfigHook: hook });
  } catch (error) {
    const reason = [(error as Error).message, ...reports].join('\n').trim();
    throw pluginsError(`the workflows can't be bundled with the code of the plugins: ${reason}`, error);
  }
}

function pluginsError(text: string, cause?: unknown): ConfigurationError {
  return new ConfigurationError([{ field: 'FOLLOW_UP_PLUGINS', text }], { cause });
}

async function build(): Promise<void> {
  const code = await bundleCode();
  writeFileSync(BUNDLE, code);
  process.stdout.write(`${BUNDLE}: ${(code.length / 1_048_576).toFixed(2)} MiB\n`);
}

// If the build fails, Node prints the error and exits with an error code.
if (require.main === module) void build();
