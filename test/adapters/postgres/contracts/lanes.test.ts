import { laneStoreContract } from "../../../contracts/lane-store.contract.ts";
import { createPostgresSubject } from "../postgres-subject.ts";

laneStoreContract("PostgreSQL", createPostgresSubject);
