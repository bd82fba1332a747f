"""CRC-32C in C: by the processor's instruction where it has one (asked once, at run time), by eight tables elsewhere.

A module that cimports this page calls crc_start() before anything else.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    /* CRC-32C, polynomial 0x1EDC6F41 reflected: eight tables where the processor has no instruction for it. */
    static uint32_t hubweir_crc_table[8][256];

    static void hubweir_crc_prepare(void) {
        for (int i = 0; i < 256; i++) {
            uint32_t value = (uint32_t)i;
            for (int bit = 0; bit < 8; bit++) value = (value >> 1) ^ (0x82F63B78u & (0u - (value & 1u)));
            hubweir_crc_table[0][i] = value;
        }
        for (int i = 0; i < 256; i++)
            for (int t = 1; t < 8; t++) {
                uint32_t before = hubweir_crc_table[t - 1][i];
                hubweir_crc_table[t][i] = (before >> 8) ^ hubweir_crc_table[0][before & 0xFF];
            }
    }

    static uint32_t hubweir_crc_by_table(uint32_t crc, const uint8_t *p, size_t size) {
        for (; size >= 8; size -= 8, p += 8) {
            crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
            crc = hubweir_crc_table[7][crc & 0xFF] ^ hubweir_crc_table[6][crc >> 8 & 0xFF]
                ^ hubweir_crc_table[5][crc >> 16 & 0xFF] ^ hubweir_crc_table[4][crc >> 24]
                ^ hubweir_crc_table[3][p[4]] ^ hubweir_crc_table[2][p[5]]
                ^ hubweir_crc_table[1][p[6]] ^ hubweir_crc_table[0][p[7]];
        }
        for (; size; size--, p++) crc = (crc >> 8) ^ hubweir_crc_table[0][(crc ^ *p) & 0xFF];
        return crc;
    }

    /* What a register becomes when a block of zeros follows. It is linear, so four tables of a byte each do. */
    #define HUBWEIR_CRC_BLOCK 256
    static uint32_t hubweir_crc_zeros[4][256];

    static void hubweir_crc_prepare_zeros(void) {
        static const uint8_t zeros[HUBWEIR_CRC_BLOCK];
        for (int i = 0; i < 256; i++)
            for (int t = 0; t < 4; t++)
                hubweir_crc_zeros[t][i] = hubweir_crc_by_table((uint32_t)i << 8 * t, zeros, HUBWEIR_CRC_BLOCK);
    }

    static inline uint32_t hubweir_crc_behind_block(uint32_t crc) {
        return hubweir_crc_zeros[0][crc & 0xFF] ^ hubweir_crc_zeros[1][crc >> 8 & 0xFF]
             ^ hubweir_crc_zeros[2][crc >> 16 & 0xFF] ^ hubweir_crc_zeros[3][crc >> 24];
    }

    #if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    #if defined(__clang__)
    /* A compiler that was told of the least x86-64 there is has to hear of this instruction by its own name, too. */
    __attribute__((target("sse4.2,crc32")))
    #else
    __attribute__((target("sse4.2")))
    #endif
    static uint32_t hubweir_crc_by_instruction(uint32_t crc, const uint8_t *p, size_t size) {
        uint64_t wide = crc;
        /* The instruction takes one word a cycle but answers after three: three blocks at a time keep it busy. */
        for (; size >= 3 * HUBWEIR_CRC_BLOCK; size -= 3 * HUBWEIR_CRC_BLOCK, p += 3 * HUBWEIR_CRC_BLOCK) {
            uint64_t second = 0, third = 0;
            for (size_t i = 0; i < HUBWEIR_CRC_BLOCK; i += 8) {
                uint64_t word[3];
                memcpy(&word[0], p + i, 8);
                memcpy(&word[1], p + i + HUBWEIR_CRC_BLOCK, 8);
                memcpy(&word[2], p + i + 2 * HUBWEIR_CRC_BLOCK, 8);
                wide = __builtin_ia32_crc32di(wide, word[0]);
                second = __builtin_ia32_crc32di(second, word[1]);
                third = __builtin_ia32_crc32di(third, word[2]);
            }
            wide = hubweir_crc_behind_block((uint32_t)wide) ^ (uint32_t)second;
            wide = hubweir_crc_behind_block((uint32_t)wide) ^ (uint32_t)third;
        }
        for (; size >= 8; size -= 8, p += 8) {
            uint64_t word;
            memcpy(&word, p, 8);
            wide = __builtin_ia32_crc32di(wide, word);
        }
        crc = (uint32_t)wide;
        /* A batch header's checksum is over 76 bytes: half a word is left. */
        if (size >= 4) {
            uint32_t half;
            memcpy(&half, p, 4);
            crc = __builtin_ia32_crc32si(crc, half);
            size -= 4;
            p += 4;
        }
        for (; size; size--, p++) crc = __builtin_ia32_crc32qi(crc, *p);
        return crc;
    }
    static int hubweir_crc_has_instruction(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("sse4.2") != 0;
    }
    #else
    #define hubweir_crc_by_instruction hubweir_crc_by_table
    static int hubweir_crc_has_instruction(void) { return 0; }
    #endif

    static int hubweir_crc_instruction;

    static void hubweir_crc_start(void) {
        hubweir_crc_prepare();
        hubweir_crc_prepare_zeros();
        hubweir_crc_instruction = hubweir_crc_has_instruction();
    }

    static uint32_t hubweir_crc(uint32_t crc, const uint8_t *p, size_t size) {
        return hubweir_crc_instruction ? hubweir_crc_by_instruction(crc, p, size) : hubweir_crc_by_table(crc, p, size);
    }
    """
    void crc_start "hubweir_crc_start"()
    uint32_t crc_register "hubweir_crc"(uint32_t crc, const uint8_t* p, size_t size) noexcept nogil
    uint32_t crc_register_by_table "hubweir_crc_by_table"(uint32_t crc, const uint8_t* p, size_t size) noexcept nogil


cdef inline uint32_t crc(uint32_t seed, const uint8_t* data, int64_t size) noexcept nogil:
    return crc_register(seed ^ <uint32_t>0xFFFFFFFF, data, <size_t>size) ^ <uint32_t>0xFFFFFFFF


cdef inline uint32_t crc_by_table(uint32_t seed, const uint8_t* data, int64_t size) noexcept nogil:
    return crc_register_by_table(seed ^ <uint32_t>0xFFFFFFFF, data, <size_t>size) ^ <uint32_t>0xFFFFFFFF
