"""web3.py as an application uses it: `python with_web3py.py URL CHAIN FROM TO BYTECODE`.

URL is the node's; CHAIN is asked for nothing but to pause its blocks.
"""

import json
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from web3 import Web3

url, chain_url, sender, to, bytecode = sys.argv[1:]
ABI = [
    {"type": "constructor", "stateMutability": "nonpayable", "inputs": [{"name": "initial", "type": "uint256"}]},
    {"type": "function", "name": "raise", "stateMutability": "nonpayable", "inputs": [{"name": "value", "type": "uint256"}], "outputs": []},
    {"type": "function", "name": "current", "stateMutability": "view", "inputs": [], "outputs": [{"name": "", "type": "uint256"}]},
]

w3 = Web3(Web3.HTTPProvider(f"{url}/rpc"))
chain = Web3.HTTPProvider(chain_url)
w3.eth.default_account = sender


def receipt(tx_hash):
    return w3.eth.wait_for_transaction_receipt(tx_hash, timeout=60, poll_latency=0.05)


def send(value):
    return w3.eth.send_transaction({"from": sender, "to": to, "value": value})


def own(tx_hash):
    return w3.provider.make_request("fencepost_getTransaction", [tx_hash.to_0x_hex()])["result"]


def replaced():
    """Priced again by an operator while no block takes it: it is mined under another hash."""
    chain.make_request("evm_setIntervalMining", [0])
    old = send(3)
    order = urllib.request.Request(
        f"{url}/api/v1/tx/{own(old)['txId']}/reprice",
        data=b'{"reason":"dearer"}',
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(order) as answer:
        ordered = answer.status
    found = own(old)
    while len(found["attempts"]) < 2:
        found = own(old)
    pending = w3.eth.get_transaction(old)
    chain.make_request("evm_setIntervalMining", [50])
    while found["receipt"] is None:
        found = own(old)
    return {
        "ordered": ordered,
        "pending": pending.hash == old,
        "another": found["txHash"] != old.to_0x_hex(),
        "status": receipt(found["txHash"]).status,
    }


first = send(5)
status = receipt(first).status
deployed = receipt(w3.eth.contract(abi=ABI, bytecode=bytecode).constructor(7).transact())
contract = w3.eth.contract(address=deployed.contractAddress, abi=ABI)
receipt(contract.functions["raise"](9).transact())
try:
    contract.functions["raise"](1).transact()
    reverted = "sent"
except Exception as error:
    reverted = str(error)
with ThreadPoolExecutor(20) as pool:
    hashes = list(pool.map(lambda _: send(1), range(200)))
    receipts = list(pool.map(receipt, hashes))
print(
    json.dumps(
        {
            "accounts": len(w3.eth.accounts),
            "status": status,
            "current": contract.functions.current().call(),
            "reverted": reverted,
            "hashes": len(set(hashes)),
            "succeeded": len([each for each in receipts if each.status == 1]),
            "own": own(first)["txHash"] == first.to_0x_hex(),
            "replaced": replaced(),
        }
    )
)
