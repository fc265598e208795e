// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// A ticket is a token that has one owner. Only minters make tickets, and each number once.
contract Ticket {
    event Transfer(address indexed from, address indexed to, uint256 indexed id);

    error NotMinter(address caller);
    error AlreadyMinted(uint256 id);

    mapping(address => bool) public isMinter;
    mapping(uint256 => address) public ownerOf;
    mapping(address => uint256) public balanceOf;
    uint256 public totalSupply;

    constructor(address[] memory minters) {
        for (uint256 i = 0; i < minters.length; i++) isMinter[minters[i]] = true;
    }

    function mint(address to, uint256 id) external {
        if (!isMinter[msg.sender]) revert NotMinter(msg.sender);
        if (ownerOf[id] != address(0)) revert AlreadyMinted(id);
        ownerOf[id] = to;
        balanceOf[to]++;
        totalSupply++;
        emit Transfer(address(0), to, id);
    }
}
