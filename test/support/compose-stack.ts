/** Runs deploy/compose.yml unchanged in a copied checkout, with ports that the system chooses. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { docker, type Ran, tryDocker } from "./docker.ts";

interface Wishes {
  readonly project: string;
  readonly imageTag: string;
  readonly ports: Readonly<Record<string, number>>;
  readonly nodes: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
}

export class ComposeStack {
  private readonly checkout: string;
  private readonly project: string;
  private readonly files: readonly string[];

  private constructor(checkout: string, project: string) {
    this.checkout = checkout;
    this.project = project;
    const named = ["compose.yml", "ports.yml"].map((name) => join(checkout, "deploy", name));
    this.files = named.flatMap((path) => ["--file", path]);
  }

  /**
   * `checkout` is the path of a copy of this checkout. `ports` are given by service name. `variables` are added to the
   * environment of every node.
   */
  static async prepare(
    checkout: string,
    { project, imageTag, ports, nodes, variables }: Wishes,
  ): Promise<ComposeStack> {
    const stack = new ComposeStack(checkout, project);
    await promisify(execFile)(join(checkout, "deploy/make-secrets.sh"), ["--dev"]);
    await writeFile(join(checkout, "deploy/.env"), `IMAGE_TAG=${imageTag}\n`);
    const services = Object.entries(ports).map(([name, port]) => {
      const environment = nodes.includes(name) ? `, environment: ${JSON.stringify(variables)}` : "";
      return `  ${name}: { ports: !override ["127.0.0.1::${port}"]${environment} }`;
    });
    await writeFile(join(checkout, "deploy/ports.yml"), `services:\n${services.join("\n")}\n`);
    return stack;
  }

  secret(name: string): string {
    return readFileSync(join(this.checkout, "deploy/secrets", name), "utf8").trim();
  }

  /** Builds and starts the services, and waits until all are healthy. */
  async up(services: readonly string[]): Promise<void> {
    await docker(...this.argv("up", "--build", "--wait", "--wait-timeout", "240", ...services));
  }

  async urlOf(service: string, port: number): Promise<string> {
    return `http://${await docker(...this.argv("port", service, String(port)))}`;
  }

  async containerOf(service: string): Promise<string> {
    return docker(...this.argv("ps", "--all", "--quiet", service));
  }

  async logs(): Promise<string> {
    const { stdout, stderr } = await tryDocker(...this.argv("logs", "--no-color", "--tail", "60"));
    return stdout + stderr;
  }

  /** Removes the stack with its volumes and the image that it built. */
  async down(): Promise<Ran> {
    return tryDocker(...this.argv("down", "--volumes", "--rmi", "local", "--timeout", "20"));
  }

  private argv(...words: readonly string[]): readonly string[] {
    return ["compose", "--project-name", this.project, ...this.files, "--profile", "dev", ...words];
  }
}
