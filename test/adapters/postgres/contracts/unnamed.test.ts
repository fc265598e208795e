import { laneStoreContract } from "../../../contracts/lane-store.contract.ts";
import { leaseStoreContract } from "../../../contracts/lease-store.contract.ts";
import { queryStoreContract } from "../../../contracts/query-store.contract.ts";
import { createPostgresSubject } from "../postgres-subject.ts";

const unnamed = () => createPostgresSubject({ preparedStatements: "off" });

leaseStoreContract("PostgreSQL, unnamed statements", unnamed);
laneStoreContract("PostgreSQL, unnamed statements", unnamed);
queryStoreContract("PostgreSQL, unnamed statements", unnamed);
